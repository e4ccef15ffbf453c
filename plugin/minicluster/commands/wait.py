"""``minicluster wait``: until a MiniCluster is ready, or has ended."""

import click

from minicluster.commands import options
from minicluster.console import streams
from minicluster.console.terminal import StyledText
from minicluster.kube.kubectl import Kubernetes
from minicluster.status.lookup import find_cluster
from minicluster.waiting.wait import Until, wait


@click.command("wait")
@options.of_cluster
@click.option(
    "--for",
    "until",
    type=click.Choice(["quorum", "end"]),
    default="quorum",
    show_default=True,
    help="Wait until Flux is ready, or until the work has ended.",
)
@click.option("--timeout", type=options.Duration(), help="How long to wait, such as 90s or 5m; by default forever.")
def command(name: str, namespace: str, context: str, until: Until, timeout: float | None) -> int:
    """Wait for a MiniCluster.

    The exit code is 0 when the quorum is reached. If the MiniCluster ends, even before the quorum, it is that of the
    work. It is 1 after the timeout.

    \b
    Examples:
      minicluster wait flux-sample --timeout 5m
      minicluster wait flux-sample --for end && echo succeeded
    """
    cluster = find_cluster(Kubernetes(context, namespace).within(timeout), name)
    end = wait(cluster, until, streams.say)
    streams.say(StyledText(end.text if end else f"{cluster.name}: Running", "wrong" if end and end.code else "well"))
    return end.code if end else 0
