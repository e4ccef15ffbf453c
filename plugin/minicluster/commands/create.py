"""``minicluster create``: a MiniCluster that stays, without a values file."""

import shlex
from typing import Any

import click

from minicluster.commands import options
from minicluster.commands.given_values import as_given
from minicluster.console import streams
from minicluster.errors import SpecError
from minicluster.kube.kubectl import Kubernetes
from minicluster.lifecycle.creation import create, remark, with_storage
from minicluster.release.created import CreateReleaseOptions, Keep, read_keep, values_file


class KeptSize(click.ParamType):  # type: ignore[type-arg]  # older versions have no argument
    """A size of volumes, and a storage class."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Keep:
        """Return both."""
        try:
            return read_keep(str(value))
        except SpecError as error:
            self.fail(f"{error}.", param, ctx)


@click.command("create")
@click.argument("name")
@options.of_nodes("Number of nodes; by default 1.")
@click.option("--max", "most", type=click.IntRange(min=1), help="The largest size it can have later; by default -N.")
@click.option("--autoscale", "autoscales", is_flag=True, help="Let the queue choose the size: -N to --max nodes.")
@click.option(
    "--keep",
    type=KeptSize(),
    metavar="SIZE[@CLASS]",
    help="Keep the queue and a shared folder /data on volumes of this size each, such as 10Gi, even after the end.",
)
@click.option(
    "--idle",
    type=options.Duration(),
    help="End it after so long without a job or client; with --autoscale and --keep it sleeps.",
)
@options.namespace("Namespace; by default the current one.")
@options.context()
@click.option("--no-wait", is_flag=True, help="Return once the release is installed, before the quorum.")
@click.option(
    "--timeout", type=options.Duration(), default="10m", show_default=True, help="How long to wait for the quorum."
)
@click.option("--print-values", is_flag=True, help="Print a values file for Helm, and create nothing.")
def command(*, namespace: str, context: str, no_wait: bool, timeout: float, print_values: bool, **asked: Any) -> None:
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
