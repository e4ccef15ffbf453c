"""Installs a burst that is a release, and waits until it has joined."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minicluster.burst import plan, removal, root
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
    certificate, name = root.find_certificate(request, lead), request.burst.name
    try:
        install(request, made, certificate, how)
        wait(request, made["size"], how.seconds)
    except KeyboardInterrupt as interrupt:
        way = f"`minicluster burst remove {request.root.name} {name}` removes it"
        interrupt.add_note(f"{name} stays in {request.target}, whole or in part: {way}")
        raise


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
        # the pods of a Job need the Secret, and a release that is half made goes with it
        if is_new and not (target.get("job", request.burst.name) or removal.own_status(request)):
            removal.remove_secret(request)
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
        has_joined = removal.until(_joined(request, wanted), seconds)
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
