"""``minicluster list``: the MiniClusters of a namespace, or of all."""

import json
from datetime import UTC, datetime

import click

from minicluster.commands import options
from minicluster.console import streams
from minicluster.kube.kubectl import Kubernetes
from minicluster.status.listing import LIST_KEYS, find_all, table

#: How the keys of the JSON are described: one on a line
_NAME_COLUMNS = max(len(key.name) for key in LIST_KEYS)
_HELP = "\n".join(
    [
        "List MiniClusters.",
        "",
        "\b",
        "Keys of the JSON:",
        *(f"  {key.name:{_NAME_COLUMNS}}  {key.about}" for key in LIST_KEYS),
    ]
)


@click.command("list", help=_HELP)
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
