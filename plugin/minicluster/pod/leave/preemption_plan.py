"""Which jobs are stopped for another one: the fewest that make room for it. Pure functions of nodes and jobs.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Iterable, Mapping, NamedTuple, Sequence

from need import Request, fit
from state import subtract

#: Cores and GPUs by rank
Free = Mapping[int, "tuple[int, int]"]
#: Nodes that the search for the fewest jobs may look at; beyond that, no job that is found could be left out
SEARCHED_NODES = 200_000


class Stoppable(NamedTuple):
    """A job that runs and may be stopped."""

    job: int
    pairs: Free
    ran: float
    urgency: int

    @property
    def loss(self) -> float:
        """The seconds of its cores that a stop loses."""
        return self.ran * sum(cores for cores, _ in self.pairs.values())


class Waiter(NamedTuple):
    """A job that waits, for which others may be stopped."""

    job: int
    request: Request
    waited: float
    urgency: int


class Stops(NamedTuple):
    """The jobs that are stopped for another."""

    job: int
    stops: Sequence[int]


def placed(request: Request, free: Free, whole: Free) -> dict[int, tuple[int, int]] | None:
    """Return what is left free once a job has its nodes, the first that it can have; None if there is no room."""
    chosen, rest = fit(request, free, whole), dict(free)
    if chosen is None:
        return None
    for rank, chunks in chosen.items():
        used = free[rank] if request.exclusive else (chunks * request.cores, chunks * request.gpus)
        rest[rank] = subtract(free[rank], used)
    return rest


def without(free: Free, jobs: Iterable[Stoppable]) -> dict[int, tuple[int, int]]:
    """Return what is free when some jobs have ended."""
    rest = dict(free)
    for job in jobs:
        for rank, (cores, gpus) in job.pairs.items():
            if rank in rest:
                rest[rank] = rest[rank][0] + cores, rest[rank][1] + gpus
    return rest


def fewest(request: Request, free: Free, whole: Free, stoppable: Iterable[Stoppable]) -> list[int]:
    """Return the fewest jobs without which another has room, those that lose least; none if all are too few."""

    def has_room(some: Iterable[Stoppable]) -> bool:
        return placed(request, without(free, some), whole) is not None

    useful = [job for job in stoppable if request.ranks is None or request.ranks & job.pairs.keys()]
    useful.sort(key=lambda job: job.loss)
    if not has_room(useful):
        return []
    for count in range(1, len(useful)):
        if math.comb(len(useful), count) * len(whole) > SEARCHED_NODES:
            break
        sets = [some for some in combinations(useful, count) if has_room(some)]
        if sets:
            return [job.job for job in min(sets, key=lambda some: sum(job.loss for job in some))]
    chosen = list(useful)
    for job in useful[::-1]:
        others = [one for one in chosen if one != job]
        if has_room(others):
            chosen = others
    return [job.job for job in chosen]


def stops_for(
    queue: Iterable[Waiter],
    nodes: tuple[Free, Free, Free],
    stoppable: Sequence[Stoppable],
    after: float,
    in_order: bool,
) -> Stops | None:
    """Return what is to be stopped for the first job of the queue that needs it; None for nothing.

    A job that has room starts by itself. ``nodes`` are what is free of them, the whole, and those that the autoscaler
    may bring: where they would do, a job waits for them as long again. ``in_order`` tells that the scheduler lets no
    job start before an earlier one.
    """
    free, whole, growth = nodes
    for each in queue:
        rest = placed(each.request, free, whole)
        if rest is not None:
            free = rest
            continue
        can_grow = placed(each.request, {**free, **growth}, {**whole, **growth}) is not None
        if each.waited >= (2 * after if can_grow else after):
            stops = fewest(each.request, free, whole, [job for job in stoppable if job.urgency <= each.urgency])
            if stops:
                return Stops(each.job, stops)
        if in_order:
            return None
    return None
