"""``minicluster burst follow``: bursts that come and go as the queue needs them."""

from collections.abc import Sequence
from typing import IO, Any

import click

from minicluster.burst import followers, root
from minicluster.burst.install import How
from minicluster.commands import burst, options
from minicluster.console import streams
from minicluster.errors import SpecError
from minicluster.kube.kubectl import Kubernetes
from minicluster.render.refusals.bursts import BurstSpec, parse


class BurstArgument(click.ParamType):  # type: ignore[type-arg]  # older versions have no argument
    """A burst with its limits and its place: NAME[:MIN-MAX][@[CONTEXT/]NAMESPACE]."""

    name = "burst"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> BurstSpec:
        """Return the burst that a word describes."""
        try:
            return parse(str(value))
        except SpecError as error:
            self.fail(f"{error}.", param, ctx)


@click.command("follow")
@click.argument("release", metavar="ROOT")
@click.argument("bursts", metavar="BURST...", type=BurstArgument(), nargs=-1, required=True)
@burst.where_root_is
@burst.of_burst
@burst.ADDRESS
@burst.VALUES_OPTION
@burst.CHART_OPTION
@click.option(
    "--backlog", type=options.Duration(), default="10s", show_default=True, help="Grow when a job has waited this long."
)
@click.option(
    "--idle",
    type=options.Duration(),
    default="5m",
    show_default=True,
    help="Shrink when hosts have not been needed this long.",
)
@click.option(
    "--timeout", type=options.Duration(), default="10m", show_default=True, help="How long hosts have to join."
)
def command(
    release: str,
    bursts: Sequence[BurstSpec],
    root_context: str,
    root_namespace: str,
    root_values: IO[bytes] | None,
    context: str,
    namespace: str,
    **how: Any,
) -> None:
    """Install, resize and remove bursts as the root's queue needs.

    Runs until Ctrl-C. A burst is installed and grows when a job waits for more hosts than the root can have. It
    shrinks, and is removed, when its hosts have not been needed for a while. A host that runs a job stays. The first
    BURST is preferred.

    BURST is NAME[:MIN-MAX][@[CONTEXT/]NAMESPACE]. The defaults are 0, all registered hosts, --context and --namespace.

    \b
    Examples:
      minicluster burst follow flux burst-0 --context other --namespace jobs
      minicluster burst follow flux burst-0:0-4@here/jobs burst-1:0-20@cloud/jobs --idle 10m
    """
    kubernetes = Kubernetes(root_context, root_namespace, is_apart=True)
    cluster = root.read(release, kubernetes, streams.read(root_values) if root_values else None)
    followed = [
        (one, Kubernetes(context if one.context is None else one.context, one.namespace or namespace, is_apart=True))
        for one in bursts
    ]
    where = How(how["address"], how["chart"], how["files"], how["timeout"])
    followers.follow(followers.FollowRequest(cluster, kubernetes, followed, where, how["backlog"], how["idle"]))
