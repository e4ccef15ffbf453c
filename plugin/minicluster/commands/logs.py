"""``minicluster logs``: the log of the lead."""

import click

from minicluster import streams
from minicluster.commands import options
from minicluster.kubectl import Kubernetes
from minicluster.live import logs


@click.command("logs")
@options.of_cluster
@click.option("-c", "--container", default="", help="A sidecar of the lead; by default the container that runs Flux.")
@click.option("-f", "--follow", is_flag=True, help="Print new lines until the MiniCluster ends.")
def command(name: str, namespace: str, context: str, container: str, follow: bool) -> None:
    """Print the log of a MiniCluster's lead.

    With --follow the log continues when another pod replaces the lead. A line on standard error says so.

    \b
    Examples:
      minicluster logs flux-sample -f
      minicluster logs flux-sample -c minicluster-agent
    """
    kubernetes = Kubernetes(context, namespace)
    with streams.until_unread():
        if follow:
            logs.follow(kubernetes, name, container, streams.say)
        else:
            logs.show(kubernetes, name, container)
