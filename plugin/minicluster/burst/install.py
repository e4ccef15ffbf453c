"""Installs a burst that is a release, waits until it has joined, and removes it when its jobs have ended."""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from minicluster.burst import plan, root
from minicluster.burst.address import Address
from minicluster.burst.root import BurstRequest, flux
from minicluster.cluster.job import end_of
from minicluster.cluster.pods import read_pod
from minicluster.cluster.reasons import pod_with_reason, why_no_pod
from minicluster.cluster.without_flux import of_no_pod
from minicluster.console import lines, streams
from minicluster.console.terminal import Progress, Share, ok
from minicluster.documents import yamlio
from minicluster.errors import BurstError, ToolError
from minicluster.flux import parse_idset
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.names import OUR_PREFIX
from minicluster.release import helm, revisions

T = TypeVar("T")
#: What Helm says of a release whose removal was interrupted
HALF_REMOVED = "has no deployed releases"


@dataclass(frozen=True)
class How:
    """How a burst is installed."""

    address: str | None  #: where it reaches the lead; None: the root's own address
    chart: str
    files: Sequence[str]  #: values files of the user, which override the computed values
    seconds: float  #: for its hosts to join, and for its removal


def prepare(request: BurstRequest, address: str | None, size: int) -> tuple[dict[str, Any], Address]:
    """Return the values of a burst that is a release, and the lead's address. Raises BurstError for machines."""
    lead = root.find_address(request, address)
    made = plan.values(request.root, request.burst, size, lead)
    plan.member(request.root, request.burst, made)
    if not request.burst.is_release:
        raise BurstError(
            f"{request.burst.name} is of flux.bursting.hostlist, so its hosts are not pods: use `minicluster burst "
            "hosts`"
        )
    return made, lead


def release_values(request: BurstRequest, address: str | None, size: int | None) -> tuple[dict[str, Any], Address]:
    """Return the same, by default for all hosts, and say what the burst's namespace needs."""
    made, lead = prepare(request, address, request.burst.size if size is None else size)
    for need in plan.needs(made):
        streams.say(f"the burst's namespace needs the {need}")
    return made, lead


def by_hand(
    request: BurstRequest, address: str | None, size: int | None, namespace: str, secret_file: Path | None
) -> bytes:
    """Return a values file of a burst that somebody installs, and write its Secret to a file if there is one."""
    made, lead = release_values(request, address, size)
    if secret_file:
        secret = plan.secret(request.root, request.burst, root.find_certificate(request, lead), namespace)
        streams.write_file(secret_file, yamlio.dump(secret), 0o600)
    return plan.values_file(request.burst, made, str(secret_file or "")).encode()


def begin(request: BurstRequest, how: How, size: int | None) -> None:
    """Install a burst, or change its size, and wait until its hosts have joined. Raises BurstError."""
    made, lead = release_values(request, how.address, size)
    install(request, made, root.find_certificate(request, lead), how)
    wait(request, made["size"], how.seconds)


def install(request: BurstRequest, values: Mapping[str, Any], certificate: str, how: How, old: int = 0) -> None:
    """Install the burst, or change its size.

    The first ``old`` hosts run already; those of them that we drained stay drained. Raises ToolError when Helm or
    kubectl fails.
    """
    target = request.target
    # ranks whose brokers were killed are still drained; this comes first, so that a root that doesn't answer is an
    # error before anything is made
    request.undrain(OUR_PREFIX, range(old, request.burst.size))
    secret = plan.secret(request.root, request.burst, certificate)
    is_new = not target.get("secret", secret["metadata"]["name"])
    # on the server's side: else the certificate would be in an annotation too
    apply = ("apply", "--server-side", "--force-conflicts", "--field-manager=minicluster", "-f", "-")
    target.kubectl(*apply, stdin=json.dumps(secret))
    try:
        upgrade(request, values, how)
    except ToolError:
        # if the Job was made, its pods still need the Secret
        if is_new and not target.get("job", request.burst.name):
            target.kubectl("delete", "secret", secret["metadata"]["name"])
        raise


def upgrade(request: BurstRequest, values: Mapping[str, Any], how: How) -> None:
    """Install or upgrade the burst's release, also after a Helm that was killed. Raises ToolError."""
    own = [word for file in how.files for word in ("--values", file)]
    name, post_renderer = request.burst.name, ("--post-renderer", "minicluster")
    words = ("upgrade", "--install", name, how.chart, "--values", "-", *own, *post_renderer)

    def change() -> None:
        request.target.helm(*words, stdin=json.dumps(values))

    try:
        revisions.in_turn(name, change, streams.say)
    except revisions.BusyError:
        revisions.forget_interrupted(request.target, name)
    except ToolError as error:
        if HALF_REMOVED not in str(error):
            raise
        helm.uninstall(request.target, name, how.seconds)
    else:
        return
    revisions.in_turn(name, change, streams.say)


def wait(request: BurstRequest, size: int, seconds: float) -> None:
    """Wait until the hosts of an installed burst have joined. ``size`` is their number if there is no Job.

    Raises BurstError when they can't join, or not within the time; it names the first missing host and quotes its pod.
    """
    burst, root, target = request.burst, request.root.name, request.target
    size = int(target.get("job", burst.name).get("spec", {}).get("completions", size))
    wanted = set(parse_idset(burst.ranks(size)))
    streams.say(f"installed {burst.name} in {target}: waiting for ranks {burst.ranks(size)} of {root}")
    with streams.waiting():
        has_joined = until(_joined(request, wanted), seconds)
    if not has_joined:
        missing = sorted(wanted - request.online())
        first = missing[0] if missing else burst.first
        raise BurstError(
            f"{len(missing)} of {size} hosts of {burst.name} have not joined {root} within {seconds:g} s, such as rank "
            f"{first}: {problem(target, burst.name, first - burst.first)}"
        )
    streams.say(ok(f"{burst.name} has joined: {size} of {burst.size} hosts, ranks {burst.ranks(size)}"))


def _joined(request: BurstRequest, wanted: set[int]) -> Callable[[], bool]:
    """Return a function that tells whether all have joined. It raises BurstError when they never will."""
    name, root, target = request.burst.name, request.root.name, request.target
    version = _version(request.flux("--version"))

    def joined() -> bool:
        there = len(wanted & request.online())
        text = f"{name}: {there} of {len(wanted)} hosts have joined {root}"
        streams.say(Progress(text, share=Share(there, len(wanted)), is_quiet=True))
        if there == len(wanted):
            return True
        pods = [read_pod(pod) for pod in target.pods(name)]
        job = target.get("job", name)
        if job and end_of(name, job):
            failed = [pod.index for pod in pods if pod.phase == "Failed"]
            raise BurstError(
                f"{name} has ended: {problem(target, name, [0, *failed][-1])}; remove it before you install it again"
            )
        running = [pod for pod in pods if pod.phase == "Running"]
        try:
            theirs = _version(flux(request.root, target, running[0].name, "--version")) if running else version
        except ToolError:
            return False  # its flux is not there yet
        if theirs[:2] != version[:2]:
            raise BurstError(
                f"{name} has Flux {'.'.join(theirs)} and {root} has {'.'.join(version)}, which don't work together: "
                "remove it, and give it the root's view by --values"
            )
        return False

    return joined


def _version(text: str) -> list[str]:
    """Return the version of Flux as its parts; brokers of the same first two join each other."""
    match = re.search(r"commands:\s+(\S+)", text)
    return (match[1] if match else text.strip()).split(".")


def problem(target: Kubernetes, name: str, index: int) -> str:
    """Return what is known of a pod that has not joined."""
    pods = target.pods(name, index)
    if not pods:
        return of_no_pod("it has no pod", name, why_no_pod(target, name))
    pod = pod_with_reason(target, read_pod(pods[-1]))
    if pod.phase == "Pending":
        return f"pod {pod.name} is {pod.why if pod.message else f'{pod.state}: see `kubectl describe pod {pod.name}`'}"
    log = lines.split(target.kubectl("logs", pod.name, "--tail=40"))
    ours = [line.removeprefix(OUR_PREFIX) for line in log if line.startswith(OUR_PREFIX)]
    return f"pod {pod.name} says: {ours[-1] if ours else 'nothing'}"


def remove(request: BurstRequest, seconds: float) -> None:
    """Drain the burst's hosts, wait until no job runs there, and uninstall the burst if it is a release.

    Raises BurstError when jobs still run there after the time; the hosts stay drained then.
    """
    name, ranks, target = request.burst.name, request.burst.ranks(), request.target
    if request.burst.is_release:
        _check_release(target, name)
    request.drain(ranks, f"{name} is being removed")
    streams.say(f"drained ranks {ranks} of {request.root.name}: waiting for the jobs that run there")
    with streams.waiting():
        streams.say(Progress(f"{name}: its jobs end", is_quiet=True))
        is_free = until(lambda: not request.busy(), seconds)
    if not is_free:
        raise BurstError(
            f"after {seconds:g} s jobs still run on {name}, whose hosts take no new ones: run this again, or cancel "
            "the jobs that `flux jobs` shows"
        )
    if not request.burst.is_release:
        streams.say(
            f"no job runs on {name}: stop the brokers there, and `flux resource undrain {name}` before they come back"
        )
        return
    uninstall(request, seconds)
    streams.say(f"removed {name}; its hosts are down until it is installed again")


def uninstall(request: BurstRequest, seconds: float) -> None:
    """Remove the burst's release and its Secret, within some seconds. Raises ToolError."""
    # together with its pods, so that none of them is left when it is installed again
    helm.uninstall(request.target, request.burst.name, seconds)
    request.target.kubectl("delete", "secret", plan.secret_name(request.burst), "--ignore-not-found")


def _check_release(target: Kubernetes, name: str) -> None:
    """Raise BurstError when there is nothing to remove: its hosts would be drained for nothing."""
    try:
        target.helm("status", name)
    except ToolError as error:
        raise BurstError(
            f"{name} can't be removed from {target}: {error}; --namespace and --context say where it is"
        ) from None


def until(condition: Callable[[], T], seconds: float) -> T:
    """Ask each second; return the first true value, or the last value when the seconds are over."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(1)
    return value
