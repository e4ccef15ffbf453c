"""The groups of a MiniCluster, which are nodes unlike its own, read from Kubernetes' objects. Each has a Job."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from minicluster.cluster.pods import GROUP, Pod, read_pods


@dataclass(frozen=True)
class GroupNodes:
    """The nodes of a group."""

    name: str
    size: int  #: pods of its Job; 0 when the Job is gone
    first: int  #: rank of its first node
    max_size: int
    pods: Mapping[int, Pod]  #: by index


def registered(immutable: Mapping[str, str]) -> dict[str, int]:
    """Return {name: maxSize} of the groups, in the order of their ranks, from a Job's record of immutable values."""
    found: dict[str, int] = {}
    while name := immutable.get(f"groups[{len(found)}].name"):
        found[name] = int(immutable[f"groups[{len(found)}].maxSize"])
    return found


def size_of(spec: Mapping[str, Any]) -> int:
    """Return the number of pods of a group, from the spec of its Job.

    While there are none, the Job is suspended, or with autoscaling has no parallelism.
    """
    return int(spec["completions"]) if spec["parallelism"] and not spec.get("suspend") else 0


def read_groups(
    groups: Mapping[str, int], first: int, jobs: Mapping[str, Any] | None, pods: Mapping[str, Any]
) -> Iterator[GroupNodes]:
    """Yield the groups of {name: maxSize}, from lists of Jobs and pods; ``first`` is the rank of their first node.

    Where the user may not list Jobs, the highest index of its pods tells a group's size.
    """
    items = jobs.get("items", []) if jobs else []
    sizes = {job["metadata"].get("labels", {}).get(GROUP): size_of(job["spec"]) for job in items}
    for name, most in groups.items():
        its = read_pods(pods, name)
        size = max(its, default=-1) + 1 if jobs is None else sizes.get(name, 0)
        yield GroupNodes(name, size, first, most, its)
        first += most
