"""Resumes a MiniCluster that its agent suspended because it was idle."""

from collections.abc import Mapping
from typing import Any

from minicluster.cluster.groups import SUSPENDED
from minicluster.cluster.job import read_job
from minicluster.errors import StateError
from minicluster.kube.port import KubePort

#: The agent's name in managedFields. The agent gives up all entries of this name, so it also cleans up after us
MANAGER = "minicluster-agent"
#: Attempts: the Job's controller may change the Job at the same time
CHANGE_TRIES = 5


def is_asleep(job: Mapping[str, Any]) -> bool:
    """Say whether a Job was suspended because it was idle, and nobody has resumed it."""
    its_job = read_job(job) if job else None
    return bool(its_job and its_job.is_asleep)


def was_woken(job: Mapping[str, Any]) -> bool:
    """Say whether a Job was suspended, and somebody other than Kueue has resumed it."""
    its_job = read_job(job) if job else None
    conditions = job.get("status", {}).get("conditions", [])
    is_resumed = ("Suspended", "False") in [(each["type"], each["status"]) for each in conditions]
    return bool(its_job and not its_job.queue and is_resumed)


def wake(kube: KubePort, name: str) -> None:
    """Resume a Job that sleeps; leave others as they are. Afterwards no client owns `suspend`, so Helm may set it.

    Raises StateError when others change it again and again, KubernetesError.
    """
    after = None
    for _ in range(CHANGE_TRIES):
        job = kube.get("job", name)
        if not is_asleep(job):
            return
        change = {"resourceVersion": job["metadata"]["resourceVersion"], "annotations": {SUSPENDED: None}}
        after = kube.patch("job", name, {"metadata": change, "spec": {"suspend": False}}, MANAGER)
        if after:
            break
    if not after:
        raise StateError("the Job was changed again and again while it was resumed: try again")
    for _ in range(CHANGE_TRIES):
        metadata = after.get("metadata", {})
        others = [entry for entry in metadata.get("managedFields", []) if entry["manager"] != MANAGER]
        if len(others) == len(metadata.get("managedFields", [])):
            return
        change = {"resourceVersion": metadata["resourceVersion"], "managedFields": others}
        # an empty patch changes nothing, and returns the managedFields, which `get` leaves out
        after = kube.patch("job", name, {"metadata": change}, MANAGER) or kube.patch("job", name, {}, MANAGER) or {}
