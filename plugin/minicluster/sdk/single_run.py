"""A command in a MiniCluster of its own, which is removed when the work has ended."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from minicluster.console.streams import Say
from minicluster.sdk.exceptions import ArgumentError, ReleaseError, WaitTimeoutError, translated
from minicluster.sdk.finished import JobFailed, Result
from minicluster.sdk.job_future import JobFuture
from minicluster.sdk.release import NodeOptions, check_post_renderer, refuse_unknown

if TYPE_CHECKING:
    from minicluster.exec.upload import Upload
    from minicluster.kube.kubectl import Kubernetes
    from minicluster.release.oneshot import Oneshot


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


def asked_for(
    words: Sequence[str], values: Mapping[str, Any] | None, timeout: float | None, options: RunOptions
) -> tuple["Oneshot", "Upload | None"]:
    """Return what is asked of a run, and what goes along. Raises ArgumentError for an unknown option."""
    from minicluster.exec.upload import along  # noqa: PLC0415 - few programs need it
    from minicluster.release.oneshot import Oneshot  # noqa: PLC0415 - it brings the renderer

    refuse_unknown("a run", options, RunOptions)
    its = {**options}
    given = {"upload": its.pop("upload", None), "fetched": its.pop("fetch", ()), "packages": its.pop("packages", "")}
    with translated():
        upload = along(given)
    return Oneshot(command=words, values=values or {}, seconds=timeout, **its), upload  # type: ignore[arg-type]


def run(kube: "Kubernetes", asked: "Oneshot", upload: "Upload | None", progress: Say) -> Result:
    """Install a release, wait until its work has ended, and remove it; return the exit code and the lead's log.

    Raises DeadlineError; EndError when it can't start, or fails without an exit code; ToolError, AccessError;
    ReleaseError when the release can't be removed.
    """
    from minicluster.lifecycle.temporary import TemporaryRelease, run_once, run_uploaded  # noqa: PLC0415 - few programs need them

    check_post_renderer()
    log = bytearray()
    if upload:
        code, left = run_uploaded(kube, asked, upload, progress, log.extend)
        if left:
            raise ReleaseError(left)
        return Result(code, log.decode(errors="replace"), "")
    release = TemporaryRelease(kube, asked, progress)
    end = run_once(release, progress, log.extend, keeps=False)
    if release.left:
        raise ReleaseError(release.left)
    return Result(end.code, log.decode(errors="replace"), "")
