"""When jobs start, by the time limits of those before them: a plan in which each waiting job has a place.

Programs of newer clients bring it along. Runs with the Python of the Flux view, 3.8 or later. Times are seconds since
the epoch.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

import state
from need import Request, chunks_on, parse_resources

#: The cores and GPUs of ranks
Pairs = Mapping[int, "tuple[int, int]"]
#: The most waiting jobs in a plan, and seconds for one: beyond that nothing is said
PLANNED_JOBS, PLAN_SECONDS = 200, 2.0


class Planned(NamedTuple):
    """A job that runs, or has a place in the plan."""

    job: int
    ends: float  #: by its limit; infinite without one
    pairs: Pairs


class Waiting(NamedTuple):
    """A job that waits."""

    job: int  #: its id, 0 for one that was not submitted
    request: Request
    seconds: float  #: its time limit; infinite without one


class Start(NamedTuple):
    """When a job starts."""

    at: float  #: infinite if that depends on a job without a time limit
    after: int = 0  #: the job whose end makes room, or whose limit is missing; 0 for none

    def told(self) -> dict[str, Any]:
        """Return it for JSON: ``at`` is null if that can't be known, ``after`` an id, or ""."""
        from flux.job import JobID

        after = JobID(self.after).f58plain if self.after else ""
        return {"at": None if math.isinf(self.at) else self.at, "after": after}


class Timeline:
    """What is free from each time on, until the next one."""

    def __init__(self, now: float, nodes: Pairs, running: Sequence[Planned]) -> None:
        self.nodes, self.placed = nodes, list(running)
        self._times, self._free = [now], [dict(nodes)]
        for job in running:
            # one that is over its limit is about to end
            self._take(now, max(now, job.ends), job.pairs)

    def _cut(self, at: float) -> int:
        """Return the place of a time among the times, where it may be new."""
        place = next((place for place, begin in enumerate(self._times) if begin >= at), len(self._times))
        if place == len(self._times) or self._times[place] != at:
            self._times.insert(place, at)
            self._free.insert(place, dict(self._free[place - 1]))
        return place

    def _take(self, begin: float, end: float, pairs: Pairs) -> None:
        first = self._cut(begin)
        last = len(self._times) if math.isinf(end) else self._cut(end)
        for free in self._free[first:last]:
            free.update({rank: state.subtract(free[rank], pair) for rank, pair in pairs.items() if rank in free})

    def place(self, job: Waiting, earliest: float = -math.inf, latest: float = math.inf) -> Start:
        """Give a job the first place in which it has room until its limit, between two times."""
        for place, begin in enumerate(self._times):
            pairs = self._room(job, place) if earliest <= begin <= latest else None
            if pairs is not None:
                self._take(begin, begin + job.seconds, pairs)
                start = Start(begin, self._ends_at(begin, pairs) if place else 0)
                self.placed.append(Planned(job.job, begin + job.seconds, pairs))
                return start
        return Start(math.inf, min((each.job for each in self.placed if math.isinf(each.ends)), default=0))

    def _room(self, job: Waiting, first: int) -> dict[int, tuple[int, int]] | None:
        """Return the cores and GPUs that a job gets from a time on; None if they don't stay free for it."""
        request, end = job.request, self._times[first] + job.seconds
        ranks = [rank for rank in self.nodes if request.ranks is None or rank in request.ranks]
        room = {rank: self._free[first][rank] for rank in ranks}
        later = first + 1
        while True:
            chunks = {rank: chunks_on(request, room[rank], self.nodes[rank]) for rank in room}
            if request.apart:
                chunks = {rank: min(1, count) for rank, count in chunks.items()}
            if sum(chunks.values()) < request.chunks:
                return None
            if later == len(self._times) or self._times[later] >= end:
                return self._chosen(request, chunks)
            free = self._free[later]
            room = {rank: (min(pair[0], free[rank][0]), min(pair[1], free[rank][1])) for rank, pair in room.items()}
            later += 1

    def _chosen(self, request: Request, chunks: Mapping[int, int]) -> dict[int, tuple[int, int]]:
        """Return what a job gets of the first ranks that have room for its chunks."""
        left, chosen = request.chunks, {}
        for rank, fits in chunks.items():
            taken = min(left, fits)
            if taken:
                of_chunks = (taken * request.cores, taken * request.gpus)
                chosen[rank] = self.nodes[rank] if request.exclusive else of_chunks
                left -= taken
        return chosen

    def _ends_at(self, at: float, pairs: Pairs) -> int:
        """Return a job that has one of some nodes, and ends at a time; 0 if none does."""
        return next((each.job for each in self.placed if each.ends == at and each.pairs.keys() & pairs.keys()), 0)


def plan(timeline: Timeline, waiting: Iterable[Waiting], *, in_order: bool) -> dict[int, Start] | None:
    """Return when jobs start, by id, the first in the queue first; None if there are too many to say.

    ``in_order`` tells that the scheduler lets no job start before an earlier one.
    """
    starts: dict[int, Start] = {}
    earliest, deadline = -math.inf, time.monotonic() + PLAN_SECONDS
    for count, job in enumerate(waiting):
        if count > PLANNED_JOBS or time.monotonic() > deadline:
            return None
        starts[job.job] = start = timeline.place(job, earliest)
        if in_order:
            earliest = start.at
    return starts


def estimate(handle: Any, jobspec: Mapping[str, Any] | None = None) -> dict[int, Start] | None:
    """Return when the waiting jobs start, by id; with a jobspec, when that one would, too, as 0.

    Of Flux's nodes those count that are up and take jobs: what needs more starts at no time. None for a queue that is
    too long. Raises OSError.
    """
    from flux.constants import FLUX_JOB_URGENCY_DEFAULT

    there, now = state.nodes(handle), time.time()
    usable = {rank: there.all[rank] for rank in sorted(there.online & there.all.keys()) if rank not in there.drained}
    waiting = state.waiting_jobs(handle)
    if jobspec is not None:
        # those that wait already are first
        waiting = [job for job in waiting if job["priority"] >= FLUX_JOB_URGENCY_DEFAULT]
    if len(waiting) > PLANNED_JOBS:
        return None
    queue = _with_requests(handle, [job["id"] for job in waiting])
    queue += [] if jobspec is None else [waiting_of(handle, 0, jobspec)]
    scheduler = state.scheduler(handle)
    in_order = scheduler.get("queuePolicy", "fcfs") == "fcfs"
    return plan(Timeline(now, usable, _running(handle)), queue, in_order=in_order)


def _running(handle: Any) -> list[Planned]:
    """Return the jobs that have resources. Raises OSError."""
    ids = [job["id"] for job in state.jobs(handle, "running", [])]
    return [
        Planned(job, float(resources["execution"].get("expiration") or math.inf), state.by_rank(resources))
        for job, resources in resources_of(handle, ids)
    ]


def resources_of(handle: Any, ids: Sequence[int]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield jobs that have resources, and their resource sets. Raises OSError."""
    for answer in looked_up(handle, ids, "R"):
        yield answer["id"], json.loads(answer["R"]) if isinstance(answer["R"], str) else answer["R"]


def _with_requests(handle: Any, ids: Sequence[int]) -> list[Waiting]:
    """Return what waiting jobs ask for, in the order of their ids here. Raises OSError."""
    jobspecs = {answer["id"]: answer["jobspec"] for answer in looked_up(handle, ids, "jobspec")}
    return [waiting_of(handle, job, jobspecs[job]) for job in ids if job in jobspecs]


def waiting_of(handle: Any, job: int, jobspec: Mapping[str, Any]) -> Waiting:
    """Return what a job asks for. Raises OSError."""
    from pending import allowed_ranks

    system = jobspec["attributes"]["system"]
    constraints = system.get("constraints")
    ranks = allowed_ranks(handle, json.dumps(constraints, sort_keys=True)) if constraints else None
    request = replace(parse_resources(jobspec["resources"]), ranks=ranks)
    return Waiting(job, request, float(system.get("duration") or math.inf))


def looked_up(handle: Any, ids: Sequence[int], key: str) -> Iterable[Mapping[str, Any]]:
    """Return the values of jobs that Flux has. Raises OSError."""
    from flux.job import JobKVSLookup

    return JobKVSLookup(handle, list(ids), keys=[key]).data() if ids else []
