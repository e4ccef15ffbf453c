"""How many nodes the queue needs: pure functions of nodes and jobs.

Programs of newer clients import it: its names stay. Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, Container, Iterable, Mapping, NamedTuple, Sequence

from state import OWN_REASON, Nodes, subtract


@dataclass(frozen=True)
class Request:
    """A job's request: chunks of cores and GPUs, each on a node of its own (``apart``), or anywhere."""

    chunks: int
    cores: int
    gpus: int
    apart: bool = False
    exclusive: bool = False  #: whole nodes
    since: float = 0  #: when the job was first seen to wait
    ranks: frozenset[int] | None = None  #: where it may run; None: anywhere


def parse_resources(resources: Iterable[Mapping[str, Any]]) -> Request:
    """Return the request in the resources of a jobspec (RFC 14, 25): nodes with slots, or slots alone."""
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
    """Return the least number that a count allows: a number, a range ``{min, max}``, or a text as ``2-4`` or ``3+``."""
    if isinstance(count, Mapping):
        return int(count["min"])
    return int(str(count).split("-")[0].split(",")[0].split(":")[0].rstrip("+"))


class Room:
    """Room for jobs on some ranks: nodes that run, and nodes that may come."""

    def __init__(self, nodes: Nodes, ranks: Iterable[int]) -> None:
        """Take the ranks in the order in which jobs are to fill them."""
        self.whole = {rank: nodes.all[rank] for rank in ranks if rank in nodes.all}
        self.free = {rank: subtract(pair, nodes.used.get(rank, (0, 0))) for rank, pair in self.whole.items()}
        self.since: dict[int, float] = {}  #: by rank: the least `since` of the jobs that were placed on it
        self._suits: dict[Any, bool] = {}

    def place(self, request: Request) -> bool:
        """Place a job on as few new ranks as possible; return False when even an empty cluster has no room for it."""
        chosen = fit(request, self.free, self.whole)
        if chosen is None:
            # the job waits until running jobs have ended, and then takes the first ranks
            later = fit(request, self.whole, self.whole)
            if later is None:
                return False
            self._use(later, request)
            return True
        for rank, chunks in chosen.items():
            taken = self.free[rank] if request.exclusive else (chunks * request.cores, chunks * request.gpus)
            self.free[rank] = subtract(self.free[rank], taken)
        self._use(chosen, request)
        return True

    def suits(self, request: Request, ranks: range) -> bool:
        """Say whether a chunk of a job would fit on one of some ranks, if it were idle."""
        key = (request.cores, request.gpus, request.ranks, ranks)
        if key not in self._suits:
            allowed = self.whole.keys() & (set(ranks) if request.ranks is None else request.ranks.intersection(ranks))
            self._suits[key] = any(chunks_on(request, self.whole[rank], self.whole[rank]) for rank in allowed)
        return self._suits[key]

    def _use(self, ranks: Iterable[int], request: Request) -> None:
        for rank in ranks:
            self.since[rank] = min(self.since.get(rank, math.inf), request.since)


def fit(
    request: Request, room: Mapping[int, tuple[int, int]], whole: Mapping[int, tuple[int, int]]
) -> dict[int, int] | None:
    """Return how many chunks each rank takes of what is free of the whole, the first ranks first; None for no room."""
    left, chosen = request.chunks, {}
    for rank, free in room.items():
        if left == 0:
            break
        if request.ranks is not None and rank not in request.ranks:
            continue
        fits = chunks_on(request, free, whole[rank])
        if fits:
            chosen[rank] = min(left, 1 if request.apart else fits)
            left -= chosen[rank]
    assert left or sum(chosen.values()) == request.chunks, f"{chosen} have {request.chunks} chunks"
    return chosen if left == 0 else None


def chunks_on(request: Request, free: tuple[int, int], whole: tuple[int, int]) -> int:
    """Return how many chunks fit on a node, of whose cores and GPUs some are free."""
    if request.exclusive and free != whole:
        return 0
    fits = [room // wanted for room, wanted in zip(free, (request.cores, request.gpus)) if wanted]
    return min(fits) if fits else 1


class Group(NamedTuple):
    """Hosts of consecutive ranks: the cluster's own, or those of a group or a burst."""

    first: int
    registered: int
    size: int  #: hosts that run or start
    most: int  #: the most hosts that it may have

    def ranks(self, count: int) -> range:
        """Return the ranks of the first hosts."""
        return range(self.first, self.first + count)

    def count(self, ranks: Container[int]) -> int:
        """Return how many hosts, from the first on, include all of some ranks."""
        return next((n for n in range(self.registered, 0, -1) if self.first + n - 1 in ranks), 0)


class Need(NamedTuple):
    """What the queue needs of a group."""

    size: int
    since: float = math.inf  #: of the first job that needs more nodes than the size


NOTHING = Need(0)


def queue_needs(nodes: Nodes, groups: Sequence[Group], pending: Iterable[Request]) -> list[Need]:
    """Return the size that the queue needs of each group, of which the first ones are to grow first.

    It is never less than the group's size while a job waits that could run there. When none does, it is one more than
    the highest rank in use. A job doesn't count if even the most hosts of all groups, and the hosts of bursts that have
    joined, have no room for it. Reads ``pending`` only until the result is certain.
    """
    room = Room(nodes, _ranks(nodes, groups))
    last = {group.first + group.most - 1 for group in groups if group.size < group.most}
    held: set[Group] = set()
    for request in pending:
        if room.place(request):
            held.update(group for group in groups if room.suits(request, group.ranks(group.size)))
        if len(held) == len(groups) and last <= room.since.keys():
            break
    return [_need(nodes, group, room.since, group in held) for group in groups]


def _ranks(nodes: Nodes, groups: Sequence[Group]) -> list[int]:
    """Return the ranks in the order in which jobs are to fill them.

    Flux gives jobs the lowest of the nodes that run. Those of bursts come last, so that the cluster's own grow first.
    """
    there, may_come = usable_ranks(nodes, groups, lambda group: group.ranks(min(group.size, group.most)))
    of_groups = {rank for group in groups for rank in group.ranks(group.registered)}
    joined = sorted(nodes.online - nodes.drained.keys() - of_groups)
    return sorted(there) + may_come + joined


def usable_ranks(
    nodes: Nodes, groups: Iterable[Group], running: Callable[[Group], Container[int]]
) -> tuple[list[int], list[int]]:
    """Return the ranks of hosts that run, and of those that may come, each in the order of the groups.

    ``running`` tells which ranks of a group run. A host that others drained is not usable; one that we drained is
    usable again once its pod has started.
    """
    broken = {rank for rank, reason in nodes.drained.items() if not reason.startswith(OWN_REASON)}
    there: list[int] = []
    may_come: list[int] = []
    for group in groups:
        runs, most = running(group), group.ranks(group.most)
        for rank in group.ranks(group.registered):
            if rank in broken:
                continue
            if rank in runs:
                there.append(rank)
            elif rank in most:
                may_come.append(rank)
    return there, may_come


def _need(nodes: Nodes, group: Group, since: Mapping[int, float], is_held: bool) -> Need:
    new = [rank for rank in group.ranks(group.most)[group.size :] if rank in since]
    if new:
        return Need(new[-1] + 1 - group.first, min(since[rank] for rank in new))
    if is_held:
        return Need(group.size)
    return Need(max([0, *(rank + 1 - group.first for rank in group.ranks(group.most) if rank in nodes.used)]))
