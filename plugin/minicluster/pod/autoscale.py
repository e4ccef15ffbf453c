"""How large the cluster should be: pure functions of a snapshot. The agent takes it and acts on the decision.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping

from state import OWN_REASON, Nodes, subtract

#: CPU use this near to the target is on target, as with Kubernetes' HorizontalPodAutoscaler
TOLERANCE = 0.1


@dataclass(frozen=True)
class Policy:
    """``autoscaling`` of the values; windows in seconds."""

    min: int
    max: int
    backlog: float
    idle: float
    step_up: int = 0  #: 0: no limit
    step_down: int = 0
    cpu_target: int = 0  #: percent of the request; 0: CPU use does not count


@dataclass(frozen=True)
class Request:
    """What a job asks for: chunks of cores and GPUs, each on a node of its own (``apart``) or wherever they fit."""

    chunks: int
    cores: int
    gpus: int
    apart: bool = False
    exclusive: bool = False  #: whole nodes


def parse_resources(resources: Iterable[Mapping[str, Any]]) -> Request:
    """Return what the resources of a jobspec (RFC 14, 25) ask for: nodes of slots, or slots."""
    nodes, slots, cores, gpus, exclusive = 0, 1, 0, 0, False
    level = list(resources)
    while level:
        below: list[Mapping[str, Any]] = []
        for item in level:
            count = _least(item["count"])
            exclusive = exclusive or bool(item.get("exclusive"))
            if item["type"] == "node":
                nodes = count
            elif item["type"] == "slot":
                slots = count
            elif item["type"] == "core":
                cores = count
            elif item["type"] == "gpu":
                gpus = count
            below += item.get("with", [])
        level = below
    if nodes:
        return Request(nodes, slots * cores, slots * gpus, apart=True, exclusive=exclusive)
    return Request(slots, cores, gpus)


def _least(count: Any) -> int:
    """Return the least of a count: a number, a range ``{min, max}``, or a text such as ``2-4`` or ``3+``."""
    if isinstance(count, Mapping):
        return int(count["min"])
    return int(str(count).split("-")[0].split(",")[0].split(":")[0].rstrip("+"))


class Room:
    """Room for jobs on the first ranks: nodes that are there, and nodes that the cluster may grow by."""

    def __init__(self, nodes: Nodes, size: int, most: int) -> None:
        """Take ranks below ``size`` as present (also those that still start), ranks below ``most`` as possible.

        A node that others drained has no room. One that we drained ourselves takes jobs again once its pod has started.
        """
        broken = {rank for rank, reason in nodes.drained.items() if rank < size and not reason.startswith(OWN_REASON)}
        ranks = [rank for rank in sorted(nodes.all) if rank < most and rank not in broken]
        self.whole = {rank: nodes.all[rank] for rank in ranks}
        self.free = {rank: subtract(nodes.all[rank], nodes.used.get(rank, (0, 0))) for rank in ranks}
        self.top = size  #: the size that has room for all jobs that were placed

    def place(self, request: Request) -> bool:
        """Place a job on as few new ranks as possible; return False when even an empty cluster has no room for it."""
        chosen = self._fit(request, self.free)
        if chosen is None:
            # it waits until running jobs have ended, and then takes ranks from 0 on
            later = self._fit(request, self.whole)
            if later is None:
                return False
            self.top = max(self.top, *(rank + 1 for rank in later))
            return True
        for rank, chunks in chosen.items():
            taken = self.free[rank] if request.exclusive else (chunks * request.cores, chunks * request.gpus)
            self.free[rank] = subtract(self.free[rank], taken)
            self.top = max(self.top, rank + 1)
        return True

    def _fit(self, request: Request, room: Mapping[int, tuple[int, int]]) -> dict[int, int] | None:
        """Return how many chunks each rank takes, the lowest ranks first; None when they don't fit."""
        left, chosen = request.chunks, {}
        for rank, free in room.items():
            if left == 0:
                break
            fits = self._chunks(request, free, self.whole[rank])
            if fits:
                chosen[rank] = min(left, 1 if request.apart else fits)
                left -= chosen[rank]
        return chosen if left == 0 else None

    @staticmethod
    def _chunks(request: Request, free: tuple[int, int], whole: tuple[int, int]) -> int:
        """Return how many chunks fit on a node."""
        if request.exclusive and free != whole:
            return 0
        fits = [room // wanted for room, wanted in zip(free, (request.cores, request.gpus)) if wanted]
        return min(fits) if fits else 1


def needed_size(nodes: Nodes, size: int, most: int, pending: Iterable[Request]) -> int:
    """Return the size that the queue needs. While jobs wait it is never less than ``size``.

    When no job waits, it is one more than the highest rank in use. Jobs that not even ``most`` nodes could run don't
    count. Reads ``pending`` only until the result is certain.
    """
    held = max([0, *(rank + 1 for rank in nodes.used if rank < most)])
    room, waits = Room(nodes, size, most), False
    for request in pending:
        waits = room.place(request) or waits
        if waits and room.top >= most:
            break
    return room.top if waits else held


@dataclass(frozen=True)
class Snapshot:
    """The cluster at one time; ``now`` in seconds of a monotonic clock."""

    now: float
    size: int  #: of the Job
    nodes: Nodes
    needed: int = 0  #: the size that the queue needs
    waiting: int = 0  #: jobs
    requested: int = 0  #: by minicluster-scale; 0: nothing
    cpu: float | None = None  #: use as a part of the request

    def wishes(self, policy: Policy) -> dict[str, int]:
        """Return the size that each reason wishes."""
        found = {"queue": self.needed, "asked": self.requested, "min": policy.min}
        if policy.cpu_target and self.cpu is not None:
            ratio = round(self.cpu * 100) / policy.cpu_target  # whole percents, as in HorizontalPodAutoscaler
            found["cpu"] = self.size if abs(ratio - 1) <= TOLERANCE else math.ceil(self.size * ratio)
        return found


@dataclass
class Autoscaler:
    """Remembers since when the cluster is too small or too large. A new one only waits for its windows again."""

    too_small: float | None = None  #: since when
    too_large: float | None = None  #: since when
    idle: dict[int, float] = field(default_factory=dict)  #: rank to since when it has no job

    def decide(self, policy: Policy, snapshot: Snapshot) -> tuple[int, str]:
        """Return the size that the cluster should have now, and why, in a few words."""
        wishes = snapshot.wishes(policy)
        reason = max(wishes, key=lambda key: wishes[key])
        wish = min(wishes[reason], policy.max)
        self._remember(snapshot, wish)
        size = snapshot.size
        if size < policy.min:
            return policy.min, "autoscaling.min"
        if wish > size:
            why = self._why(reason, snapshot)
            if self.too_small is None or snapshot.now - self.too_small < policy.backlog:
                return size, f"waits: {why}, for less than {policy.backlog:g} s"
            return min(wish, size + (policy.step_up or wish)), why
        if wish < size:
            return self._shrink(policy, snapshot, max(wish, policy.min))
        return size, "nothing to do"

    def _shrink(self, policy: Policy, snapshot: Snapshot, wish: int) -> tuple[int, str]:
        """Return the least size, down to ``wish``, above which all ranks are idle."""
        if self.too_large is None or snapshot.now - self.too_large < policy.idle:
            return snapshot.size, f"waits: nodes have been idle for less than {policy.idle:g} s"
        size = snapshot.size
        least = max(wish, size - (policy.step_down or size))
        while size > least and snapshot.now - self.idle.get(size - 1, math.inf) >= policy.idle:
            size -= 1
        if size == snapshot.size:
            return size, "waits: the highest nodes have jobs"
        return size, f"nodes idle for {policy.idle:g} s"

    def _remember(self, snapshot: Snapshot, wish: int) -> None:
        now, size = snapshot.now, snapshot.size
        self.too_small = (self.too_small if self.too_small is not None else now) if wish > size else None
        self.too_large = (self.too_large if self.too_large is not None else now) if wish < size else None
        self.idle = {rank: self.idle.get(rank, now) for rank in range(size) if rank not in snapshot.nodes.used}

    @staticmethod
    def _why(reason: str, snapshot: Snapshot) -> str:
        if reason == "queue":
            return "1 job waits for nodes" if snapshot.waiting == 1 else f"{snapshot.waiting} jobs wait for nodes"
        if reason == "asked":
            return "minicluster-scale requested it"
        return "autoscaling.min" if reason == "min" else f"CPU use is {snapshot.cpu or 0:.0%} of the request"
