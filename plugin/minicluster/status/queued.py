"""What Kueue is about to do, or has done, because pods of a MiniCluster in its queue are not ready."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from minicluster.cluster import kueue
from minicluster.cluster.find import LiveCluster
from minicluster.cluster.groups import GroupNodes
from minicluster.cluster.job import KubernetesJob
from minicluster.cluster.pods import Pod
from minicluster.errors import KubernetesError
from minicluster.kube.port import KubePort
from minicluster.status.table import duration

#: Kueue's limit by default (waitForPodsReady: timeout and recoveryTimeout), which only an administrator can read
LIMIT_SECONDS = 1800
#: When the autoscaler gives up pods by default (pod/agent/scaled_job.py)
GIVE_UP_SECONDS = 900
#: Seconds that pods may take to be ready before that is told
STARTING_SECONDS = 60


def of_kueue(kube: KubePort, cluster: LiveCluster, now: datetime, policy: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield what Kueue does about pods that are not ready, to a user who may read its Workloads.

    ``policy`` is the autoscaler's; None while it is off or unknown.
    """
    job = cluster.job
    if not job or job.end:
        return
    parts: list[tuple[str, str, KubernetesJob | GroupNodes, Mapping[int, Pod]]] = [
        ("", "", job, cluster.pods),
        *((f"group {group.name}: ", f"{group.name}=", group, group.pods) for group in cluster.groups),
    ]
    for label, size_of, one, pods in parts:
        if one.queue and one.uid and not one.is_suspended:
            ready = max(sum(pod.is_ready for pod in pods.values()), 0 if label else 1)
            scale = f"minicluster scale {cluster.name} {size_of}{ready}"
            yield from (f"{label}{text}" for text in _of_job(kube, one.uid, now, scale, policy))


def _of_job(kube: KubePort, uid: str, now: datetime, scale: str, policy: Mapping[str, Any] | None) -> Iterator[str]:
    try:
        workloads = kube.select(kueue.WORKLOADS, f"{kueue.JOB_UID}={uid}")
    except KubernetesError:
        return
    if before := kueue.evicted_before(workloads):
        why, time = before
        yield f"Kueue suspended all pods, and started them again at {time:%Y-%m-%d %H:%M:%S} UTC: {why}"
    lacks = kueue.unready(workloads)
    seconds = (now - lacks.since).total_seconds() if lacks else 0
    if lacks and seconds > STARTING_SECONDS:
        since = f"not all pods have been ready for {duration(seconds)} ({lacks.reason})"
        left = LIMIT_SECONDS - seconds
        if left > 0:
            way = _way(lacks, scale, policy)
            yield f"{since}: in {duration(left)}, by default, Kueue suspends all pods: {way}"
        else:
            yield f"{since}: Kueue's limit, {duration(LIMIT_SECONDS)} by default, is longer here, or off"


def _way(lacks: kueue.Unready, scale: str, policy: Mapping[str, Any] | None) -> str:
    """Return how pods that nobody can place don't end the others."""
    give_up = policy.get("give_up") if policy else 0
    give_up = GIVE_UP_SECONDS if give_up is None else give_up
    if lacks.is_elastic and give_up:
        return f"after {duration(give_up)} the autoscaler gives up those whose nodes are not in Flux"
    if lacks.is_elastic:
        return f"`{scale}` gives up the others"
    setting = "set recoveryTimeout to 0s" if lacks.reason == kueue.RECOVERY else "give timeout more time"
    return f"ask its administrator to {setting} (waitForPodsReady)"
