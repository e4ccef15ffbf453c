"""``minicluster list``: the MiniClusters of a namespace, or of all."""

import json
from datetime import UTC, datetime

import click

from minicluster import streams
from minicluster.commands import options
from minicluster.kube.kubectl import Kubernetes
from minicluster.live.listing import find_all, table


@click.command("list")
@options.namespace("Their namespace; by default the current one.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="List the MiniClusters of all namespaces.")
@options.context()
@options.output
def command(namespace: str, everywhere: bool, context: str, output: str) -> None:
    """List MiniClusters.

    \b
    Keys of the JSON:
      name, namespace, release  texts
      size, ready               numbers of pods: wanted, ready; those of groups count
      groups                    {name: size}
      state                     Suspended, Starting, Running, Ending, Complete or Failed; `minicluster status` says why
      scheduler                 that of the values; null where they leave it to the view:
                                `minicluster status` says which one runs
      age                       seconds
    """
    rows = find_all(Kubernetes(context, namespace), everywhere, datetime.now(UTC))
    if output == "json":
        streams.write(json.dumps(rows, indent=2).encode() + b"\n")
    elif rows:
        streams.write(table(rows, everywhere).encode())
    else:
        streams.say(f"no MiniClusters in {'any namespace' if everywhere else Kubernetes(context, namespace)}")
