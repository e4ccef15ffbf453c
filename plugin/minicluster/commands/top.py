"""``minicluster top``: the jobs and nodes of a MiniCluster on a whole terminal."""

from contextlib import suppress

import click

from minicluster.commands import options
from minicluster.kube.kubectl import Kubernetes
from minicluster.status.lookup import find


@click.command("top")
@options.of_cluster
def command(name: str, namespace: str, context: str) -> None:
    """Show the jobs and nodes of a MiniCluster on the terminal.

    Takes the whole terminal until you press q: the queue, the nodes and the size over the last ten minutes, what
    happened, and the jobs. Keys sort the jobs, and show one with the end of its output. Without a terminal it prints
    one picture, as plain text.

    Uses kubectl, with the permissions of `minicluster status`, and `list` of events to know why the size changed.

    \b
    Example:
      minicluster top flux-sample
    """
    kubernetes = Kubernetes(context, namespace)
    own_name = find(kubernetes, name).name
    # rich is imported where it draws
    from minicluster.picture import top  # noqa: PLC0415

    with suppress(KeyboardInterrupt):
        top.show(kubernetes, own_name)
