"""Which pods of an elastic Job of Kueue are not ready, for how long, and which size the Job can have without them.

Kueue suspends the whole Job when one of its pods is not ready for too long (waitForPodsReady, on by default from 0.19
on). Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Collection, Iterable, Mapping, NamedTuple

from kube import INDEX, has_gate
from state import to_idset

#: Seconds that Kueue may take to admit pods
ADMISSION_SECONDS = 15.0
#: Seconds until the agent again asks for more than Kueue has admitted
QUOTA_SECONDS = 300.0
#: Seconds after which pods that are not ready are told: most are by then
TOLD_SECONDS = 60.0
#: The states of an index's pods; the first one counts
POD_STATES = ("ready", "gated", "unplaced", "stuck")


@dataclass
class Quota:
    """Remembers which size Kueue refused; all times in seconds of a monotonic clock.

    Kueue admits a new size as a whole: unless there is quota for all of it, none of its new pods starts.
    """

    limit: float = math.inf  #: the largest size to ask for
    since: float | None = None  #: since when pods have been gated
    again: float = math.inf  #: when the limit ends

    def granted(self, now: float, size: int, gated: int) -> int:
        """Return the size to have: ``size``, or if pods have been gated for too long, halfway to the admitted size."""
        if now >= self.again:
            self.limit = self.again = math.inf
        if not gated:
            self.since = None
            return size
        assert gated <= size, f"{gated} of {size} pods are gated"
        if self.since is None:
            self.since = now
        if now - self.since < ADMISSION_SECONDS:
            return size
        self.since, self.limit, self.again = None, size - 1, now + QUOTA_SECONDS
        return size - (gated + 1) // 2


class Lacking(NamedTuple):
    """What keeps a Job from having all of its pods ready, by index."""

    gated: int = 0  #: how many wait for Kueue's quota
    unplaced: Collection[int] = frozenset()  #: no Kubernetes node has room for them, or they can't be made
    stuck: Collection[int] = frozenset()  #: those that have a Kubernetes node, and are not ready

    def without(self, indexes: Collection[int]) -> Lacking:
        """Return the same without some indexes."""
        return Lacking(self.gated, *(frozenset(set(each) - set(indexes)) for each in (self.unplaced, self.stuck)))


def lacking(pods: Iterable[Mapping[str, Any]], size: int) -> Lacking:
    """Return what a Job of a size lacks, by its pods. An index has several while one ends and the next one starts."""
    by_node: dict[int, set[str]] = {index: set() for index in range(size)}
    for pod in pods:
        index = int(pod["metadata"]["labels"].get(INDEX, size))
        if index < size:
            by_node[index].add(_state(pod))
    best = {index: min(states, default="unplaced", key=POD_STATES.index) for index, states in by_node.items()}
    unplaced, stuck = (frozenset(i for i, one in best.items() if one == state) for state in ("unplaced", "stuck"))
    return Lacking(sum(state == "gated" for state in best.values()), unplaced, stuck)


def _state(pod: Mapping[str, Any]) -> str:
    status = pod.get("status", {})
    conditions = {each["type"]: each["status"] for each in status.get("conditions", [])}
    if "deletionTimestamp" in pod["metadata"] or status.get("phase") == "Failed":
        return "stuck"
    if conditions.get("Ready") == "True" or status.get("phase") == "Succeeded":
        return "ready"
    if has_gate(pod["spec"]):
        return "gated"
    return "stuck" if pod["spec"].get("nodeName") else "unplaced"


@dataclass
class Placement:
    """Remembers since when pods are not ready; all times in seconds of a monotonic clock."""

    limit: float = math.inf  #: the largest size to ask for
    again: float = math.inf  #: when the limit ends
    since: dict[int, float] = field(default_factory=dict)  #: by index: since when it has no ready pod
    begin: float | None = None  #: since when some have none: Kueue counts that time

    def kept(self, now: float, size: int, lacks: Lacking, patience: float) -> int:
        """Return the size to have: ``size``, or less once pods have not been ready for ``patience`` seconds.

        The Job loses its highest pods. That lets others start where those were: so it is smaller by the number of pods
        without a place. A pod that has a place, and is not ready, does not become so: the Job ends below it.
        """
        if now >= self.again:
            self.limit = self.again = math.inf
        indexes = {*lacks.unplaced, *lacks.stuck}
        self.since = {index: self.since.get(index, now) for index in indexes}
        if not indexes:
            self.begin = None
            return size
        if self.begin is None:
            self.begin = now
        if not self.is_over(now, patience):
            return size
        # one that has only just gone may come back
        late = {index for index in indexes if now - self.since[index] >= min(patience, TOLD_SECONDS)}
        least = min((index for index in late if index in lacks.stuck), default=size)
        kept = min(size - len(late & set(lacks.unplaced)), least)
        assert 0 <= kept <= size, f"{kept} of {size} pods would be kept"
        return kept

    def is_over(self, now: float, seconds: float) -> bool:
        """Say whether some pods have not been ready for that long."""
        return self.begin is not None and now - self.begin >= seconds

    def give_up(self, now: float, size: int) -> None:
        """Ask for no more than this size for a while, as without quota."""
        self.limit, self.again = size, now + QUOTA_SECONDS


def named(kind: str, indexes: Collection[int]) -> str:
    """Return indexes in words, such as ``pods 2-3``."""
    return f"{kind}{'s' if len(indexes) > 1 else ''} {to_idset(indexes)}"
