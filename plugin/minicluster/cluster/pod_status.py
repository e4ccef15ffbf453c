"""What the status of a pod says: why it is as it is, how its runner ended, and what its other containers do."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from minicluster.cluster.states import of_container_end
from minicluster.cluster.troubles import way_out
from minicluster.console.messages import counted

#: Reasons for which a container waits without a problem
STARTING = ("", "PodInitializing", "ContainerCreating")
#: Reasons for which a container doesn't start, and most often never will
STUCK_REASONS = (
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "CrashLoopBackOff",
)
#: Exit code of a runner that leaves what it did to a new pod
STOP_CODE = 85
#: Annotations with the number of pods of an index that failed before; those of the second don't count for backoffLimit
FAILURES, IGNORED_FAILURES = (
    "batch.kubernetes.io/job-index-failure-count",
    "batch.kubernetes.io/job-index-ignored-failure-count",
)


def is_cut_off(status: Mapping[str, Any], conditions: Mapping[str, str]) -> bool:
    """Return whether a pod's Kubernetes node is lost.

    Kubernetes then calls its pods not ready (controller_utils.go, MarkPodsNotReady), while their containers still are.
    """
    is_ready, were_ready = conditions.get("Ready") == "True", conditions.get("ContainersReady") == "True"
    return status.get("phase") == "Running" and ((were_ready and not is_ready) or status.get("reason") == "NodeLost")


def end(status: Mapping[str, Any], runner: str) -> Mapping[str, Any]:
    """Return how and when the runner ended; an empty map while it runs."""
    states = {container["name"]: container["state"] for container in status.get("containerStatuses", [])}
    terminated: Mapping[str, Any] = states.get(runner, {}).get("terminated", {})
    return terminated


def ended(status: Mapping[str, Any], runner: str) -> str:
    """Return when a pod ended, as its Job counts it (RFC 3339); "" if unknown.

    Of an evicted pod's container Kubernetes may not know it. Then that is when the pod was no longer ready.
    """
    if time := end(status, runner).get("finishedAt"):
        return str(time)
    conditions = status.get("conditions", []) if status.get("phase") == "Failed" else []
    return next((str(condition["lastTransitionTime"]) for condition in conditions if condition["type"] == "Ready"), "")


def reason(status: Mapping[str, Any], runner: str, is_leaving: bool) -> tuple[str, str]:
    """Return the reason for a pod's phase and Kubernetes' message about it; "" where there is none."""
    phase = status.get("phase", "Pending")
    if phase == "Failed":
        return status.get("reason") or _failure(status, runner), status.get("message", "")
    if is_leaving:
        return "Terminating", ""
    if keepers := kept_by(status, runner):
        code = end(status, runner)["exitCode"]
        return f"ended with exit code {code}, kept by {keepers}", ""
    return _wait(status) if phase == "Pending" else ("", "")


def kept_by(status: Mapping[str, Any], runner: str) -> str:
    """Return the containers that keep a pod whose runner has ended, such as a proxy that was added; "" for none."""
    states = {container["name"]: container["state"] for container in status.get("containerStatuses", [])}
    if status.get("phase") != "Running" or "terminated" not in states.get(runner, {}):
        return ""
    return ", ".join(name for name, state in states.items() if "terminated" not in state)


def _failure(status: Mapping[str, Any], runner: str) -> str:
    """Return how the runner failed, or else how another container did."""
    for container in [*status.get("containerStatuses", []), *status.get("initContainerStatuses", [])]:
        ended = container["state"].get("terminated")
        if ended and ended["exitCode"]:
            name = "" if container["name"] == runner else container["name"]
            # one that was killed, and that did not go on when it came back, says only that
            killed = container.get("lastState", {}).get("terminated") if ended["exitCode"] == STOP_CODE else None
            return _listed(name, _ended(killed or ended))
    return ""


def _ended(state: Mapping[str, Any]) -> str:
    return of_container_end(state.get("reason", ""), state["exitCode"])


def _wait(status: Mapping[str, Any]) -> tuple[str, str]:
    """Return what a pending pod waits for: a Kubernetes node, or else one of its containers."""
    waits = [c for c in status.get("conditions", []) if c["type"] == "PodScheduled" and c["status"] == "False"]
    states = [container["state"] for container in _containers(status)]
    # PodInitializing says only that a container waits for another one
    waiting = [state["waiting"] for state in states if "waiting" in state]
    waits += sorted(waiting, key=lambda state: state.get("reason") == "PodInitializing")
    return (waits[0].get("reason", ""), waits[0].get("message", "")) if waits else ("", "")


def failing(status: Mapping[str, Any], runner: str) -> Iterator[tuple[str, str]]:
    """Yield each container that can't run or whose last run failed, and how, until the pod ends.

    The runner is among them when it was killed: Kubernetes starts it again in its pod.
    """
    if status.get("phase") in ("Succeeded", "Failed"):
        return
    for container in _containers(status):
        state, last = container.get("state", {}), container.get("lastState", {})
        word = state.get("waiting", {}).get("reason", "")
        ended = state.get("terminated") or last.get("terminated") or {}
        code, restarts = ended.get("exitCode", 0), container.get("restartCount", 0)
        times = counted(restarts, "restart") if restarts else ""
        if container["name"] == runner:
            if restarts and code:
                yield runner, ": ".join(filter(None, [_listed(word, how := _ended(ended), times), way_out(how, "")]))
        elif code or word not in STARTING:
            yield container["name"], _listed(word, f"exit code {code}" if code else "", times)


def started(status: Mapping[str, Any], runner: str) -> tuple[str, bool]:
    """Return when the runner began to run (RFC 3339), "" while it doesn't; and whether it has run before in its pod."""
    container = next((each for each in _containers(status) if each["name"] == runner), {})
    return str(container.get("state", {}).get("running", {}).get("startedAt", "")), bool(container.get("restartCount"))


def _containers(status: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]


def _listed(*words: str) -> str:
    return ", ".join(filter(None, words))


def failures(annotations: Mapping[str, str]) -> int:
    """Return how many pods of an index have failed, with this one; 0 if Kubernetes doesn't count them."""
    if FAILURES not in annotations:
        return 0
    return 1 + int(annotations[FAILURES]) + int(annotations.get(IGNORED_FAILURES, "0"))
