"""Removes a burst when its jobs have ended, and what an interrupted change has left of it.

The burst's Secret is made first and removed last: where it is gone, nothing is left.
"""

import json
import time
from collections.abc import Callable

from minicluster.burst import plan
from minicluster.burst.root import BurstRequest
from minicluster.cluster.job import end_of
from minicluster.console import streams
from minicluster.console.terminal import Progress
from minicluster.documents import value_at
from minicluster.errors import BurstError, ToolError
from minicluster.kube.port import Object
from minicluster.release import helm

#: Where Helm has the name of the root of a release, and the status of a release whose removal has begun
ROOT_NAME, REMOVING = ("config", "flux", "bursting", "leadBroker", "name"), "uninstalling"


def remove(request: BurstRequest, seconds: float) -> None:
    """Drain the burst's hosts, wait until no job runs there, and uninstall the burst if it is a release.

    Raises BurstError when jobs still run there after the time; the hosts stay drained then.
    """
    name, ranks = request.burst.name, request.burst.ranks()
    has_release = request.burst.is_release and _has_release(request)
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
    (uninstall if has_release else remove_rest)(request, seconds)
    streams.say(f"removed {name}; its hosts are down until it is installed again")


def uninstall(request: BurstRequest, seconds: float) -> None:
    """Remove the burst's release and its Secret, within some seconds. Raises ToolError."""
    # together with its pods, so that none of them is left when it is installed again
    helm.uninstall(request.target, request.burst.name, seconds)
    remove_secret(request)


def remove_rest(request: BurstRequest, seconds: float) -> None:
    """Remove the burst's Secret, and before it a release of the root, if there is one. Raises ToolError."""
    if own_status(request):
        helm.uninstall(request.target, request.burst.name, seconds)
    remove_secret(request)


def end_with_root(request: BurstRequest, seconds: float) -> None:
    """Remove the burst of a root that has ended, if it is there. Raises MiniClusterError."""
    if is_left(request):
        streams.say(f"{request.burst.name}: its root has ended: removing it")
        remove_rest(request, seconds)


def remove_secret(request: BurstRequest) -> None:
    """Remove the burst's Secret, if it is there. Raises ToolError."""
    request.target.kubectl("delete", "secret", plan.secret_name(request.burst), "--ignore-not-found")


def is_left(request: BurstRequest) -> bool:
    """Return whether something of the burst is there. Raises KubernetesError."""
    labels = request.target.get("secret", plan.secret_name(request.burst)).get("metadata", {}).get("labels", {})
    return bool(labels.get(plan.ROOT_LABEL) == request.root.name)


def clear(request: BurstRequest, job: Object, seconds: float, *, is_new: bool) -> None:
    """Remove a burst whose Job has ended, or whose removal was interrupted.

    Helm is asked for the latter only if the burst ``is_new`` to the caller. Raises BurstError when it is removed, or
    can't be yet; ToolError.
    """
    name = request.burst.name
    if "deletionTimestamp" in job["metadata"]:
        raise BurstError(f"it is being removed from {request.target}")
    if end := end_of(name, job):
        streams.say(f"{name}: its Job has ended: {': '.join(filter(None, end))}: removing it")
        uninstall(request, seconds)
        # the burst's next Job may end at once too
        raise BurstError("its Job had ended")
    if is_new and own_status(request) == REMOVING:
        request.drain(request.burst.ranks(), f"{name} is being removed")
        if request.busy():
            raise BurstError("its removal was interrupted, and jobs still run there")
        streams.say(f"{name}: its removal was interrupted: removing it")
        uninstall(request, seconds)
        raise BurstError("its removal had been interrupted")


def own_status(request: BurstRequest) -> str:
    """Return Helm's status of the burst's release; "" without one, or for one that is not of the root.

    Raises ToolError.
    """
    try:
        release = json.loads(request.target.helm("status", request.burst.name, "--output=json"))
    except ToolError as error:
        if helm.NOT_FOUND in str(error):
            return ""
        raise
    return str(release["info"]["status"]) if value_at(release, *ROOT_NAME) == request.root.name else ""


def _has_release(request: BurstRequest) -> bool:
    """Return whether there is a release; without one, only its Secret is left.

    Raises BurstError when there is nothing to remove: its hosts would be drained for nothing.
    """
    name, target = request.burst.name, request.target
    try:
        target.helm("status", name)
    except ToolError as error:
        if helm.NOT_FOUND in str(error) and is_left(request):
            return False
        raise BurstError(
            f"{name} can't be removed from {target}: {error}; --namespace and --context say where it is"
        ) from None
    return True


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Ask each second; return whether the condition held before the seconds were over."""
    end = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < end:
        time.sleep(1)
    return holds
