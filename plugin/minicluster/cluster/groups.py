"""The groups of a MiniCluster, which are nodes unlike its own, read from Kubernetes' objects. Each has a Job."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from minicluster.cluster.pods import Pod, read_pods
from minicluster.render.constants import GROUP_LABEL, KUEUE_QUEUE

#: Annotation of a Job that says who suspended it
SUSPENDED = "minicluster/suspended"


@dataclass(frozen=True)
class GroupNodes:
    """The nodes of a group."""

    name: str
    size: int  #: pods of its Job; 0 when the Job is gone
    first: int  #: rank of its first node
    max_size: int
    pods: Mapping[int, Pod]  #: by index
    is_suspended: bool = False  #: whether its Job is
    queue: str = ""  #: Kueue's, "" without
    uid: str = ""  #: of its Job
    why_held: str = ""  #: by Kueue
    why_no_pod: str = ""  #: what an event says of a pod that its Job could not make
    failures: int = 0  #: pods that failed and count


def registered(immutable: Mapping[str, str]) -> dict[str, int]:
    """Return {name: maxSize} of the groups, in the order of their ranks, from a Job's record of immutable values."""
    sizes: dict[str, int] = {}
    while name := immutable.get(f"groups[{len(sizes)}].name"):
        sizes[name] = int(immutable[f"groups[{len(sizes)}].maxSize"])
    return sizes


def size_of(job: Mapping[str, Any]) -> int:
    """Return the number of pods that the Job of a group should have.

    If that is 0, the Job is suspended, or with autoscaling or in a queue of Kueue has no parallelism. A Job that Kueue
    holds back, or the value `suspend`, has its size.
    """
    spec = job["spec"]
    is_held = queue_of(job) or SUSPENDED in job["metadata"].get("annotations", {})
    return int(spec["completions"]) if spec["parallelism"] and (is_held or not spec.get("suspend")) else 0


def queue_of(job: Mapping[str, Any]) -> str:
    """Return the queue of Kueue that a Job is in, "" for none."""
    return str(job["metadata"].get("labels", {}).get(KUEUE_QUEUE, ""))


def read_groups(
    groups: Mapping[str, int], first: int, jobs: Mapping[str, Any] | None, pods: Mapping[str, Any]
) -> Iterator[GroupNodes]:
    """Yield the groups of {name: maxSize}, from lists of Jobs and pods; ``first`` is the rank of their first node.

    Where the user may not list Jobs, the highest index of its pods tells a group's size.
    """
    items = jobs.get("items", []) if jobs else []
    by_name = {job["metadata"].get("labels", {}).get(GROUP_LABEL): job for job in items}
    for name, most in groups.items():
        its = read_pods(pods, name)
        if job := by_name.get(name):
            is_suspended, uid = job["spec"].get("suspend", False), job["metadata"].get("uid", "")
            failed = job.get("status", {}).get("failed", 0)
            yield GroupNodes(name, size_of(job), first, most, its, is_suspended, queue_of(job), uid, failures=failed)
        else:
            yield GroupNodes(name, max(its, default=-1) + 1 if jobs is None else 0, first, most, its)
        first += most
