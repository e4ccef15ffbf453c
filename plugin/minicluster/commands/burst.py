"""``minicluster burst``: clusters and machines that join a root."""

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import click

from minicluster.burst import followers, install, machines, removal, root
from minicluster.commands import options
from minicluster.commands.given_values import Parsed
from minicluster.console import streams
from minicluster.kube.kubectl import Kubernetes
from minicluster.release import helm
from minicluster.render.refusals.bursts import BurstSpec, parse

ADDRESS = click.option(
    "--address", metavar="HOST[:PORT]", help="Where the burst reaches the lead; by default the address of its Service."
)
SIZE_OPTION = click.option("--size", type=int, help="Number of hosts; by default all that the root has registered.")
VALUES_OPTION = options.values("Values of the burst's own, as Helm takes them; repeatable.")
CHART_OPTION = click.option("--chart", default=str(helm.CHART), help="Another chart, such as one around the package's.")
TIMEOUT_OPTION = click.option(
    "--timeout", type=options.duration, default="10m", show_default=True, help="How long to wait, such as 90s or 5m."
)


#: Where the root is
where_root_is = options.together(
    click.option(
        "--root-context", default="", callback=options.place, help="The root's context; by default the current one."
    ),
    click.option(
        "--root-namespace", default="", callback=options.place, help="The root's namespace; by default the current one."
    ),
    click.option("--root-values", type=click.File("rb"), help="The root's values, instead of its release's."),
)
#: What names a burst and its root
of_root = options.together(
    click.argument("release", metavar="ROOT"), click.argument("name", metavar="BURST"), where_root_is
)
#: Where the burst runs
of_burst = options.together(
    options.context("The burst's context; by default the current one."),
    options.namespace("The burst's namespace; by default the current one."),
)


@click.group("burst")
def command() -> None:
    """Add other clusters and machines to a root.

    ROOT is a release with flux.bursting in its values. BURST is a name in its flux.bursting.clusters, or hosts of its
    flux.bursting.hostlist.

    \b
    Examples:
      minicluster burst install flux burst-0 --context other --namespace jobs
      minicluster burst remove flux burst-0 --context other --namespace jobs
      minicluster burst follow flux burst-0 --context other --namespace jobs
      minicluster burst values flux burst-0 --secret-file secret.yaml > burst-0-values.yaml
      minicluster burst hosts flux 'vm-[0-3]' --output-dir folder
    """


@command.command("values")
@of_root
@options.namespace("Namespace of the Secret; by default the manifest names none.", default=None)
@ADDRESS
@SIZE_OPTION
@click.option("--secret-file", type=click.Path(dir_okay=False, path_type=Path), help="Write the burst's Secret here.")
def print_values(
    namespace: str | None, address: str | None, size: int | None, secret_file: Path | None, **of: Any
) -> None:
    """Print the values of a burst, to install it by hand.

    The values begin with the commands that install the burst. The Secret contains the root's certificate.
    """
    request = _request(Kubernetes(namespace=namespace or ""), **of)
    streams.write(install.by_hand(request, address, size, namespace or "", secret_file))


@command.command("install")
@of_root
@of_burst
@ADDRESS
@SIZE_OPTION
@VALUES_OPTION
@CHART_OPTION
@TIMEOUT_OPTION
def install_burst(
    context: str,
    namespace: str,
    address: str | None,
    size: int | None,
    files: Sequence[str],
    chart: str,
    timeout: float,
    **of: Any,
) -> None:
    """Install a burst, or change its size, and wait until it joins.

    Creates the Secret with the root's certificate, installs the release, and undrains the hosts that `burst remove`
    drained. If hosts don't join within the timeout, the error says why, and the burst keeps trying.
    """
    how = install.How(address, chart, files, timeout)
    install.begin(_request(Kubernetes(context, namespace), **of), how, size)


@command.command("remove")
@of_root
@of_burst
@TIMEOUT_OPTION
def remove_burst(context: str, namespace: str, timeout: float, **of: Any) -> None:
    """Drain a burst, wait for its jobs, and uninstall it.

    If jobs still run there after the timeout, nothing is uninstalled and the hosts stay drained. Brokers on machines of
    a hostlist are not stopped: do that yourself.
    """
    removal.remove(_request(Kubernetes(context, namespace), **of), timeout)


@command.command("hosts")
@of_root
@ADDRESS
@options.output_dir("Write the files into this folder: a new or an empty one, or one of an earlier run.", required=True)
def write_hosts(address: str | None, output_dir: Path, **of: Any) -> None:
    """Write the files with which machines outside Kubernetes join.

    The files are the same for all machines of a burst. One of them is the certificate.
    """
    machines.write_for(_request(Kubernetes(), **of), address, output_dir)


def _request(
    target: Kubernetes,
    *,
    release: str,
    name: str,
    root_context: str,
    root_namespace: str,
    root_values: IO[bytes] | None,
) -> root.BurstRequest:
    """Return the root and the burst that the options name. Raises BurstError if one doesn't exist."""
    kubernetes = Kubernetes(root_context, root_namespace)
    return root.request(release, name, kubernetes, streams.read(root_values) if root_values else None, target)


@command.command("follow")
@click.argument("release", metavar="ROOT")
@click.argument("bursts", metavar="BURST...", type=Parsed(parse), nargs=-1, required=True)
@where_root_is
@of_burst
@ADDRESS
@VALUES_OPTION
@CHART_OPTION
@click.option(
    "--backlog", type=options.duration, default="10s", show_default=True, help="Grow when a job has waited this long."
)
@click.option(
    "--idle",
    type=options.duration,
    default="5m",
    show_default=True,
    help="Shrink when hosts have not been needed this long.",
)
@click.option("--timeout", type=options.duration, default="10m", show_default=True, help="How long hosts have to join.")
def follow_bursts(
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
    where = install.How(how["address"], how["chart"], how["files"], how["timeout"])
    followers.follow(followers.FollowRequest(cluster, kubernetes, followed, where, how["backlog"], how["idle"]))
