"""``minicluster replace``: values that a live Job can't take, without losing the queue."""

from collections.abc import Sequence

import click

from minicluster.commands import options
from minicluster.console import streams
from minicluster.kube.kubectl import Kubernetes
from minicluster.lifecycle.replace import ReplaceOptions, replace


@click.command("replace")
@options.of_cluster
@options.values("Values to change, as with `helm upgrade`; may be repeated.")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="Change a value, as with `helm upgrade`.")
@click.option(
    "--grace",
    type=options.Duration(),
    help="How long running jobs may go on, such as 10m; then they are requeued. By default, until they have ended.",
)
@click.option("--now", is_flag=True, help="Requeue running jobs at once.")
@options.yes
@click.option(
    "--timeout",
    type=options.Duration(),
    default="10m",
    show_default=True,
    help="How long the new pods may take to reach the quorum before the change is rolled back.",
)
def command(
    name: str,
    namespace: str,
    context: str,
    files: Sequence[str],
    sets: Sequence[str],
    grace: float | None,
    now: bool,
    is_sure: bool,
    timeout: float,
) -> None:
    """Change what a live Job can't take, and keep the queue.

    A live Job can't take another image, command, resources, maxSize and more. Stops the queue, lets running jobs end,
    makes the Job anew, and goes on with the queue, which must be kept (state.capacity, state.claimName or
    archive.path). All other values stay. If the new pods don't start, the change is rolled back. After an interruption,
    run the same command again.

    Lists the jobs that run. With --grace or --now it asks, on a terminal, if there are any.

    \b
    Examples:
      minicluster replace flux-sample --set maxSize=64
      minicluster replace flux-sample -f new.yaml --grace 10m
    """
    if now and grace is not None:
        raise click.UsageError("--now and --grace exclude each other: drop one of them")
    words = [*(f"--values={file}" for file in files), *(f"--set={text}" for text in sets)]
    asked = ReplaceOptions(words, 0.0 if now else grace, timeout)
    where = Kubernetes(context, namespace, is_apart=True).settled()
    replace(where, name, asked, streams.say, agree=options.agreement(is_sure))
