"""``minicluster delete``: removes a MiniCluster by Helm."""

import click

from minicluster.commands import options
from minicluster.console import streams
from minicluster.kube.kubectl import Kubernetes
from minicluster.lifecycle.deletion import delete


@click.command("delete")
@options.of_cluster
@options.yes
@click.option(
    "--timeout", type=options.Duration(), default="10m", show_default=True, help="How long its pods may take to end."
)
def command(name: str, namespace: str, context: str, is_sure: bool, timeout: float) -> None:
    """Remove a MiniCluster, with its release.

    If jobs would end with it, lists them and, on a terminal, asks. Waits until the pods are gone. Volumes that are kept
    stay, and a line says how to remove them.

    \b
    Examples:
      minicluster delete flux-sample
      minicluster delete flux-sample --yes
    """
    delete(Kubernetes(context, namespace), name, timeout, streams.say, options.agreement(is_sure))
