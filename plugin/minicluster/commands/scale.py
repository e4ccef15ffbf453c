"""``minicluster scale``: another size for a live MiniCluster."""

from typing import Any

import click

from minicluster.commands import options
from minicluster.console import streams
from minicluster.kube.kubectl import Kubernetes
from minicluster.lifecycle.scaling import AskedSize, scale


class Size(click.ParamType):  # type: ignore[type-arg]  # older versions have no argument
    """A number of nodes, or ``auto``, which is None; GROUP=NUMBER for a group."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int | None, str]:
        """Return the number and the group, "" for the cluster's own nodes."""
        group, equals, number = value.rpartition("=")
        is_number = number.isascii() and number.isdigit() and (int(number) or group)
        if not (is_number or number == "auto") or bool(group) != bool(equals):
            self.fail(f"{value!r} is not a size: give a whole number, 1 or more, GROUP=NUMBER, or auto", param, ctx)
        return None if number == "auto" else int(number), group


@click.command("scale")
@options.of_cluster
@click.argument("size", type=Size(), metavar="[GROUP=]SIZE|auto")
@options.yes
@click.option("--wait", "waits", is_flag=True, help="Wait until the nodes are in Flux.")
@click.option(
    "--timeout", type=options.Duration(), default="10m", show_default=True, help="How long to wait, such as 90s or 5m."
)
def command(
    name: str,
    namespace: str,
    context: str,
    size: tuple[int | None, str],
    is_sure: bool,
    waits: bool,
    timeout: float,
) -> None:
    """Change the size of a live MiniCluster, up to its maxSize.

    Upgrades its release with this package's chart and keeps all other values. A MiniCluster with autoscaling still
    chooses its own size: SIZE is then the minimum, and `auto` withdraws it.

    If jobs run on nodes that would leave, lists them and, on a terminal, asks.

    \b
    Examples:
      minicluster scale flux-sample 8 --wait
      minicluster scale flux-sample gpu=4
      minicluster scale flux-sample auto
      minicluster scale flux-sample gpu=auto
    """
    kubernetes, seconds = Kubernetes(context, namespace), timeout if waits else None
    scale(kubernetes, name, AskedSize(*size), seconds, streams.say, agree=options.agreement(is_sure))
