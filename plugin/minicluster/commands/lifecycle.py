"""Commands that change a MiniCluster: ``create``, ``scale``, ``replace`` and ``delete``."""

import shlex
from collections.abc import Sequence
from typing import Any

import click

from minicluster.commands import options
from minicluster.commands.given_values import Parsed, as_given
from minicluster.console import streams
from minicluster.errors import SpecError
from minicluster.kube.kubectl import Kubernetes
from minicluster.release.created import CreateReleaseOptions, read_keep, values_file


@click.command("create")
@click.argument("name")
@options.of_nodes("Number of nodes; by default 1.")
@click.option("--max", "most", type=click.IntRange(min=1), help="The largest size it can have later; by default -N.")
@click.option("--autoscale", "autoscales", is_flag=True, help="Let the queue choose the size: -N to --max nodes.")
@click.option(
    "--keep",
    type=Parsed(read_keep),
    metavar="SIZE[@CLASS]",
    help="Keep the queue and a shared folder /data on volumes of this size each, such as 10Gi, even after the end.",
)
@click.option(
    "--idle",
    type=options.duration,
    help="End it after so long without a job or client; with --autoscale and --keep it sleeps.",
)
@options.where
@click.option("--no-wait", is_flag=True, help="Return once the release is installed, before the quorum.")
@click.option(
    "--timeout", type=options.duration, default="10m", show_default=True, help="How long to wait for the quorum."
)
@click.option("--print-values", is_flag=True, help="Print a values file for Helm, and create nothing.")
def create_command(
    *, namespace: str, context: str, no_wait: bool, timeout: float, print_values: bool, **asked: Any
) -> None:
    """Create a MiniCluster that waits for jobs.

    Installs a release of this package's chart, waits until its nodes are up, and prints the Helm command that it
    ran. `minicluster delete` removes it.

    With --keep the queue, the records of jobs and the files in /data, which all nodes share, outlive the lead's pod and
    the release. If a volume of the storage class can be on one Kubernetes node at a time only, all pods run there.

    \b
    Examples:
      minicluster create demo --image lammps:latest -N 2 --max 8 --keep 10Gi
      minicluster create demo -N 1 --max 8 --autoscale --idle 1h --cpu 4 --memory 8Gi --gpus 1
      minicluster create demo -N 2 --print-values > values.yaml
    """
    from minicluster.lifecycle.creation import create, remark, with_storage

    kubernetes = Kubernetes(context, namespace)
    one = with_storage(kubernetes, CreateReleaseOptions(**asked))
    if print_values:
        streams.write(values_file(one).encode())
        if text := remark(one):
            streams.say(text)
    else:
        create(kubernetes, one, None if no_wait else timeout, streams.say, _show)


def _show(line: str) -> None:
    """Print Helm's command line, on a terminal without its middle if it does not fit; --print-values has the values."""
    line, width = as_given(line), streams.width()
    words = shlex.split(line)
    click.echo(line if not width or len(line) <= width else f"{shlex.join(words[:3])} … {shlex.join(words[-2:])}")


def _size(text: str) -> tuple[int | None, str]:
    """Return a number of nodes, None for ``auto``, and the group, "" for the cluster's own nodes. Raises SpecError."""
    group, equals, number = text.rpartition("=")
    is_number = number.isascii() and number.isdigit() and (int(number) or group)
    if not (is_number or number == "auto") or bool(group) != bool(equals):
        raise SpecError(f"{text!r} is not a size: give a whole number, 1 or more, GROUP=NUMBER, or auto")
    return None if number == "auto" else int(number), group


@click.command("scale")
@options.of_cluster
@click.argument("size", type=Parsed(_size), metavar="[GROUP=]SIZE|auto")
@options.yes
@click.option("--wait", "waits", is_flag=True, help="Wait until the nodes are in Flux.")
@click.option(
    "--timeout", type=options.duration, default="10m", show_default=True, help="How long to wait, such as 90s or 5m."
)
def scale_command(
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
    from minicluster.lifecycle.scaling import scale

    kubernetes, seconds = Kubernetes(context, namespace), timeout if waits else None
    scale(kubernetes, name, *size, seconds, streams.say, agree=options.agreement(is_sure))


@click.command("replace")
@options.of_cluster
@options.values("Values to change, as with `helm upgrade`; may be repeated.")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="Change a value, as with `helm upgrade`.")
@click.option(
    "--grace",
    type=options.duration,
    help="How long running jobs may go on, such as 10m; then they are requeued. By default, until they have ended.",
)
@click.option("--now", is_flag=True, help="Requeue running jobs at once.")
@options.yes
@click.option(
    "--timeout",
    type=options.duration,
    default="10m",
    show_default=True,
    help="How long the new pods may take to reach the quorum before the change is rolled back.",
)
def replace_command(
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
    from minicluster.lifecycle.replace import replace

    if now and grace is not None:
        raise click.UsageError("--now and --grace exclude each other: drop one of them")
    words = [*(f"--values={file}" for file in files), *(f"--set={text}" for text in sets)]
    where = Kubernetes(context, namespace, is_apart=True).settled()
    replace(where, name, words, 0.0 if now else grace, timeout, streams.say, agree=options.agreement(is_sure))


@click.command("delete")
@options.of_cluster
@options.yes
@click.option(
    "--timeout", type=options.duration, default="10m", show_default=True, help="How long its pods may take to end."
)
def delete_command(name: str, namespace: str, context: str, is_sure: bool, timeout: float) -> None:
    """Remove a MiniCluster, with its release.

    If jobs would end with it, lists them and, on a terminal, asks. Waits until the pods are gone. Volumes that are kept
    stay, and a line says how to remove them.

    \b
    Examples:
      minicluster delete flux-sample
      minicluster delete flux-sample --yes
    """
    from minicluster.lifecycle.deletion import delete

    delete(Kubernetes(context, namespace), name, timeout, streams.say, options.agreement(is_sure))
