"""How large the cluster should be: pure functions of what was seen; the agent asks, and does it.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping

from state import OURS, Nodes, minus

#: CPU use this near to the target is on target, as with Kubernetes' HorizontalPodAutoscaler
TOLERANCE = 0.1


@dataclass(frozen=True)
class Policy:
    """What ``autoscaling`` of the values says; windows in seconds."""

    min: int
    max: int
    backlog: float
    idle: float
    step_up: int = 0  #: 0: no limit
    step_down: int = 0
    cpu_target: int = 0  #: percent of the request; 0: not by CPU use


@dataclass(frozen=True)
class Request:
    """What a job asks for: so many chunks of cores and GPUs, each on a node of its own or where they fit."""

    chunks: int
    cores: int
    gpus: int
    apart: bool = False
    exclusive: bool = False  #: whole nodes


def request(resources: Iterable[Mapping[str, Any]]) -> Request:
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
    """Room on the first ranks: those that can take jobs, as they are, and as many more as are opened."""

    def __init__(self, nodes: Nodes, size: int, most: int) -> None:
        """Take ranks below ``size`` as there (those that start too), up to ``most`` as possible.

        What we drained ourselves takes jobs again once its pod has started.
        """
        broken = {rank for rank, reason in nodes.drained.items() if rank < size and not reason.startswith(OURS)}
        ranks = [rank for rank in sorted(nodes.all) if rank < most and rank not in broken]
        self.whole = {rank: nodes.all[rank] for rank in ranks}
        self.free = {rank: minus(nodes.all[rank], nodes.used.get(rank, (0, 0))) for rank in ranks}
        self.top = size  #: ranks below are there

    def place(self, asked: Request) -> bool:
        """Place a job, on as few new ranks as it takes; False when even an empty cluster has no room for it."""
        chosen = self._fit(asked, self.free)
        if chosen is None:
            # later, when what runs has ended: it then takes ranks from 0 on
            later = self._fit(asked, self.whole)
            if later is None:
                return False
            self.top = max(self.top, *(rank + 1 for rank in later))
            return True
        for rank, chunks in chosen.items():
            self.free[rank] = (
                (0, 0) if asked.exclusive else minus(self.free[rank], (chunks * asked.cores, chunks * asked.gpus))
            )
            self.top = max(self.top, rank + 1)
        return True

    def _fit(self, asked: Request, room: Mapping[int, tuple[int, int]]) -> dict[int, int] | None:
        """Return how many chunks each rank takes, the lowest ranks first."""
        left, chosen = asked.chunks, {}
        for rank, free in room.items():
            if left == 0:
                break
            fits = self._chunks(asked, free, self.whole[rank])
            if fits:
                chosen[rank] = min(left, 1 if asked.apart else fits)
                left -= chosen[rank]
        return chosen if left == 0 else None

    @staticmethod
    def _chunks(asked: Request, free: tuple[int, int], whole: tuple[int, int]) -> int:
        if asked.exclusive and free != whole:
            return 0
        by = [room // wanted for room, wanted in zip(free, (asked.cores, asked.gpus)) if wanted]
        return min(by) if by else 1


def need(nodes: Nodes, size: int, most: int, pending: Iterable[Request]) -> int:
    """Return the size that the queue needs, never less than there is while jobs wait.

    Without waiting jobs it is what jobs hold: one more than the highest rank in use. Jobs that not even ``most``
    nodes could run don't count. Reads no more of ``pending`` than decides.
    """
    held = max([0, *(rank + 1 for rank in nodes.used if rank < most)])
    room, waits = Room(nodes, size, most), False
    for asked in pending:
        waits = room.place(asked) or waits
        if waits and room.top >= most:
            break
    return room.top if waits else held


@dataclass(frozen=True)
class Seen:
    """What was seen at a time; ``now`` in seconds of a clock that never goes back."""

    now: float
    size: int  #: of the Job
    nodes: Nodes
    need: int = 0
    waiting: int = 0  #: jobs
    asked: int = 0  #: by minicluster-scale; 0: nothing
    cpu: float | None = None  #: use as a part of the request

    def wishes(self, policy: Policy) -> dict[str, int]:
        """Return the size that each reason wishes."""
        found = {"queue": self.need, "asked": self.asked, "min": policy.min}
        if policy.cpu_target and self.cpu is not None:
            ratio = round(self.cpu * 100) / policy.cpu_target  # whole percents, as there
            found["cpu"] = self.size if abs(ratio - 1) <= TOLERANCE else math.ceil(self.size * ratio)
        return found


@dataclass
class Autoscaler:
    """Remembers since when more, or less, is wanted; a new one only waits its windows again."""

    short: float | None = None  #: since when more is wanted
    long: float | None = None  #: since when less is wanted
    idle: dict[int, float] = field(default_factory=dict)  #: since when a rank has no job

    def decide(self, policy: Policy, seen: Seen) -> tuple[int, str]:
        """Return the size that the cluster should have now, and why, in a few words."""
        wishes = seen.wishes(policy)
        reason = max(wishes, key=lambda key: wishes[key])
        wish = min(wishes[reason], policy.max)
        self._remember(seen, wish)
        if seen.size < policy.min:
            return policy.min, "autoscaling.min"
        if wish > seen.size:
            why = self._why(reason, seen)
            if self.short is None or seen.now - self.short < policy.backlog:
                return seen.size, f"waits: {why} since under {policy.backlog:g} s"
            return min(wish, seen.size + (policy.step_up or wish)), why
        if wish < seen.size:
            return self._shrink(policy, seen, max(wish, policy.min))
        return seen.size, "nothing to do"

    def _shrink(self, policy: Policy, seen: Seen, wish: int) -> tuple[int, str]:
        """Return the least size that only idle ranks are above."""
        if self.long is None or seen.now - self.long < policy.idle:
            return seen.size, f"waits: nodes are idle since under {policy.idle:g} s"
        size = seen.size
        least = max(wish, seen.size - (policy.step_down or seen.size))
        while size > least and seen.now - self.idle.get(size - 1, math.inf) >= policy.idle:
            size -= 1
        return size, f"nodes idle for {policy.idle:g} s" if size < seen.size else "waits: the highest nodes have jobs"

    def _remember(self, seen: Seen, wish: int) -> None:
        self.short = (self.short if self.short is not None else seen.now) if wish > seen.size else None
        self.long = (self.long if self.long is not None else seen.now) if wish < seen.size else None
        self.idle = {r: self.idle.get(r, seen.now) for r in range(seen.size) if r not in seen.nodes.used}

    @staticmethod
    def _why(reason: str, seen: Seen) -> str:
        if reason == "queue":
            return f"{seen.waiting} jobs wait for nodes"
        if reason == "asked":
            return "minicluster-scale asked"
        return "autoscaling.min" if reason == "min" else f"CPU use is {seen.cpu or 0:.0%} of the request"
