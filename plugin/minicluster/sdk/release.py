"""The releases of the SDK: those that stay, and that of one command, which is removed when the work has ended."""

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from minicluster.console.streams import Say
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.port import KubePort
from minicluster.sdk.exceptions import ArgumentError, ReleaseError, WaitTimeoutError
from minicluster.sdk.job_future import JobFuture
from minicluster.sdk.jobs import refuse_unknown
from minicluster.sdk.outcome import JobFailed, Result


class NodeOptions(TypedDict, total=False):
    """What the nodes are, for `MiniCluster.create` and `MiniCluster.run`; what is not given is as in the values."""

    image: str  #: of your application
    nodes: int  #: ``size`` of the values
    cpu: str  #: of each node, a quantity: its request and its limit
    memory: str  #: of each node, a quantity: its request and its limit
    gpus: int  #: of each node: a limit of nvidia.com/gpu
    files: Sequence[str]  #: values files, as Helm's ``--values`` takes them; they override ``values``
    sets: Sequence[str]  #: ``KEY=VALUE``, as Helm's ``--set`` takes it; they override all else


def refuse_wrong(what: str, values: object, options: Mapping[str, object], known: type) -> None:
    """Raise ArgumentError for values that are no mapping, and for an option that a TypedDict does not have."""
    if not isinstance(values, Mapping):
        raise ArgumentError(f"values={values!r}: give a dict; files=[…] takes values files")
    refuse_unknown(what, options, known)


def check_size(size: int | None, group: str) -> None:
    """Raise ArgumentError for a size that a MiniCluster, or its group, can't have; None asks for none."""
    least = 0 if group else 1
    if size is not None and (not isinstance(size, int) or size < least):
        way = "" if group else "; delete() removes the MiniCluster"
        raise ArgumentError(f"size={size!r}: give a whole number, {least} or more{way}")


class CreateOptions(NodeOptions, total=False):
    """The options of `MiniCluster.create`, besides those of NodeOptions: all that ``minicluster create`` has."""

    max_nodes: int  #: that it can have later
    autoscale: bool  #: from ``nodes`` to ``max_nodes``, as the queue needs them
    idle: float  #: seconds without a job or client after which it ends; with ``autoscale`` and ``keep`` it sleeps
    keep: str  #: SIZE or SIZE@CLASS: volumes for the queue and a shared folder /data, also after the end


def install(  # noqa: PLR0913, PLR0917 - those of `MiniCluster.create`
    kube: KubePort,
    name: str,
    values: Mapping[str, Any],
    chart: str,
    options: CreateOptions,
    seconds: float | None,
    progress: Say,
) -> None:
    """Install the chart as a release of a name, and with ``seconds`` wait for the quorum.

    Raises ArgumentError for an unknown option, SpecError; ReleaseError, ToolError, StateError, UsageError; EndError,
    DeadlineError.
    """
    from minicluster.lifecycle.creation import create, with_storage  # noqa: PLC0415 - who only submits jobs has no release
    from minicluster.release.created import CreateReleaseOptions, read_keep  # noqa: PLC0415

    refuse_wrong("create", values, options, CreateOptions)
    keep = read_keep(options["keep"]) if "keep" in options else None
    own: dict[str, Any] = {"most": options.get("max_nodes"), "autoscales": options.get("autoscale", False)}
    own |= {"keep": keep, "idle": options.get("idle")}
    nodes = {key: value for key, value in options.items() if key in NodeOptions.__annotations__}
    asked = CreateReleaseOptions(name=name, values=values, chart=chart, **own, **nodes)  # type: ignore[arg-type]
    check_post_renderer()
    create(kube, with_storage(kube, asked), seconds, progress, progress)


def check_post_renderer() -> None:
    """Raise ReleaseError when Helm would not find this package; a notebook's PATH often lacks its environment."""
    if not shutil.which("minicluster"):
        folder = Path(sys.executable).parent
        raise ReleaseError(f"Helm runs minicluster, which is not in PATH: add {folder} to PATH")


class RunOptions(NodeOptions, total=False):
    """The options of `MiniCluster.run`, besides those of NodeOptions; what is not given is as in the values."""

    tasks: int  #: of the command; 0 is one on each node
    name: str  #: of the release; a new one by default
    inside: str  #: a MiniCluster that stays, where the command gets an instance of Flux of its own
    upload: str  #: a folder of this machine, which the nodes get first; the command runs in it
    packages: str  #: a requirements.txt or uv.lock there, whose Python packages the command has
    fetch: Sequence[str]  #: patterns of files that come back to it, such as ``*.csv`` or ``out/``


#: Options of a run inside a MiniCluster
INSIDE = ("nodes", "tasks", "upload", "packages", "fetch")


def run_inside(
    submit: Callable[..., JobFuture], words: Sequence[str], timeout: float | None, given: Mapping[str, Any]
) -> Result:
    """Run a command in an instance inside a MiniCluster; return its exit code and output.

    Raises ArgumentError for an option of a MiniCluster of its own; WaitTimeoutError, and what the future raises.
    """
    options = {name: value for name, value in given.items() if value}
    inside = options.pop("inside")
    if other := next((name for name in options if name not in INSIDE), ""):
        raise ArgumentError(f"{other} is for a MiniCluster of its own, and {inside} is there: leave out one of them")
    future = submit(words, instance=True, **options)
    try:
        job = future.result(timeout)
    except JobFailed as error:
        job = error.job
    except TimeoutError:
        future.cancel()
        raise WaitTimeoutError(f"{words[0]} in {inside} has not ended within {timeout:g} s: it is cancelled") from None
    return Result(job.exit_code, job.stdout, job.stderr)


def run(  # noqa: PLR0913, PLR0917 - those of `MiniCluster.run`
    where: Callable[[], Kubernetes],
    words: Sequence[str],
    values: Mapping[str, Any] | None,
    timeout: float | None,
    options: RunOptions,
    progress: Say,
) -> Result:
    """Install a release, wait until its work has ended, and remove it; return the exit code and the lead's log.

    Raises ArgumentError for an unknown option, before it asks ``where``; DeadlineError; EndError when it can't start,
    or fails without an exit code; ToolError, AccessError; ReleaseError when the release can't be removed.
    """
    from minicluster.exec.upload import along  # noqa: PLC0415 - few programs need these
    from minicluster.lifecycle.temporary import run_release  # noqa: PLC0415
    from minicluster.release.oneshot import Oneshot  # noqa: PLC0415

    refuse_wrong("a run", values or {}, options, RunOptions)
    its = {**options}
    given = {"upload": its.pop("upload", None), "fetched": its.pop("fetch", ()), "packages": its.pop("packages", "")}
    upload, log = along(given), bytearray()
    asked = Oneshot(command=words, values=values or {}, seconds=timeout, **its)  # type: ignore[arg-type]
    kube = where()
    check_post_renderer()
    code, left = run_release(kube, asked, upload, progress, log.extend)
    if left:
        raise ReleaseError(left)
    return Result(code, log.decode(errors="replace"), "")
