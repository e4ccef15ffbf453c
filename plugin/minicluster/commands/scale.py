"""``minicluster scale``: another size for a live MiniCluster."""

from typing import Any

import click

from minicluster import streams
from minicluster.commands import options
from minicluster.kubectl import Kubernetes
from minicluster.live.scaling import scale


class Size(click.ParamType):  # type: ignore[type-arg]  # older versions have no argument
    """A number of nodes, or ``auto``, which is None."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int | None]:
        """Return the number in a tuple: click takes a bare None for a missing argument."""
        if value == "auto":
            return (None,)
        if not (value.isascii() and value.isdigit() and int(value)):
            self.fail(f"{value!r} is not a size: give a whole number, 1 or more, or auto", param, ctx)
        return (int(value),)


@click.command("scale")
@options.of_cluster
@click.argument("size", type=Size(), metavar="SIZE|auto")
@click.option("--wait", "waits", is_flag=True, help="Return when the nodes are in Flux.")
@click.option(
    "--timeout", type=options.Duration(), default="10m", show_default=True, help="How long to wait, such as 90s or 5m."
)
def command(name: str, namespace: str, context: str, size: tuple[int | None], waits: bool, timeout: float) -> None:
    """Change the size of a live MiniCluster, up to its maxSize.

    Upgrades its release with this package's chart and keeps all other values. A MiniCluster with autoscaling still
    chooses its own size: SIZE is then the minimum, and `auto` withdraws it.

    \b
    Examples:
      minicluster scale flux-sample 8 --wait
      minicluster scale flux-sample auto
    """
    scale(Kubernetes(context, namespace), name, size[0], timeout if waits else None, streams.say)
