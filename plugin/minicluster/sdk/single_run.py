"""A command in a MiniCluster of its own, which is removed when the work has ended."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from minicluster.cluster.lead import Lead
from minicluster.errors import StateError
from minicluster.live.once import StartWatch
from minicluster.live.telling import StateTeller
from minicluster.release.oneshot import Oneshot
from minicluster.sdk import release
from minicluster.sdk.channel import Result
from minicluster.sdk.client import KubeClient, Object
from minicluster.sdk.exceptions import ArgumentError, EndedError
from minicluster.sdk.lead_log import logs
from minicluster.sdk.leads import find_job, wait_for
from minicluster.sdk.sdk_evidence import SdkEvidence

#: Gets a line for people
Progress = Callable[[str], None]


class RunOptions(TypedDict, total=False):
    """The options of `MiniCluster.run`; what is not given is as in the values."""

    image: str
    nodes: int
    tasks: int  #: 0: one on each node
    cpu: str  #: of each node, a quantity: its request and its limit
    memory: str  #: of each node, a quantity: its request and its limit
    gpus: int  #: of each node: a limit of nvidia.com/gpu
    name: str  #: of the release; a new one by default


def asked_for(
    words: Sequence[str], values: Mapping[str, Any] | None, timeout: float | None, options: RunOptions
) -> Oneshot:
    """Return what is asked of a run. Raises ArgumentError for an unknown option."""
    unknown = [name for name in options if name not in RunOptions.__annotations__]
    if unknown:
        raise ArgumentError(
            f"{unknown[0]} is not an option of a run: there are {', '.join(RunOptions.__annotations__)}"
        )
    return Oneshot(command=words, values=values or {}, seconds=timeout, **options)


def run(kube: KubeClient, asked: Oneshot, progress: Progress | None) -> Result:
    """Install a release, wait until its work has ended, and remove it; return the exit code and the lead's log.

    Raises ReleaseError, ApiError, WaitTimeoutError; EndedError when it can't start, or fails without an exit code.
    """
    end = None if asked.seconds is None else time.monotonic() + asked.seconds
    with release.installed_once(kube, asked):
        name = find_job(kube, asked.name)["metadata"]["name"]
        seconds = None if end is None else max(0.0, end - time.monotonic())
        code = wait_for(kube, name, "end", seconds, _teller(kube, name, progress))
        return Result(code or 0, "".join(f"{line}\n" for line in logs(kube, name, "", follow=False)), "")


def _teller(kube: KubeClient, name: str, progress: Progress | None) -> Callable[[Object, Lead | None], None]:
    """Return a function that says the state when it has changed. It raises EndedError for a pod that can't start."""
    tell, check = StateTeller(SdkEvidence(kube), name, progress or (lambda _: None)), StartWatch(name)

    def told(job: Object, lead: Lead | None) -> None:
        try:
            check(tell(job, lead))
        except StateError as error:
            raise EndedError(str(error)) from None

    return told
