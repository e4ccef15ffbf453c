"""``minicluster list``: the MiniClusters of a namespace, or of all."""

import json
from datetime import UTC, datetime

import click

from minicluster.commands import json_keys, options
from minicluster.console import streams
from minicluster.kube.kubectl import Kubernetes
from minicluster.status.listing import find_all, table

#: The help, with the keys
LISTING_HELP = f"List MiniClusters.\n\n{json_keys.in_words('list')}"


@click.command("list", help=LISTING_HELP)
@options.namespace("Their namespace; by default the current one.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="List the MiniClusters of all namespaces.")
@options.context()
@options.output
def command(namespace: str, everywhere: bool, context: str, output: str) -> None:
    """List MiniClusters."""
    rows = find_all(Kubernetes(context, namespace), everywhere, datetime.now(UTC))
    if output == "json":
        streams.write(json.dumps(rows, indent=2).encode() + b"\n")
    elif rows:
        streams.write(table(rows, everywhere, streams.width()).encode())
    else:
        streams.say(f"no MiniClusters in {'any namespace' if everywhere else Kubernetes(context, namespace)}")
