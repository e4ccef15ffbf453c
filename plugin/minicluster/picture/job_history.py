"""The jobs of a picture: what is known of each, the lanes of its bar, and the queue over time.

Those that ended first are forgotten.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from minicluster.cluster.states import of_job
from minicluster.flux import parse_idset
from minicluster.status import used
from minicluster.status.reported import PICTURE_JOBS
from minicluster.status.table import left_at

Row = dict[str, Any]
#: The result of a job whose queue went with its lead
LOST_RESULT = "LOST"


class JobHistory:
    """Records of jobs by their numbers, and which have changed."""

    def __init__(self, most: int = PICTURE_JOBS) -> None:
        """Know no job; keep ``most`` of those that end."""
        self.most = most
        self.jobs: dict[int, Row] = {}
        self.inside: dict[str, Row] = {}  #: those inside of others, by their ids; they have no place of their own
        self.active: set[int] = set()
        self.lanes = Lanes()
        self._running: set[int] = set()  # those that have their lanes
        self._ended: dict[int, None] = {}  # in the order of their ends

    def take(self, rows: Iterable[Mapping[str, Any]]) -> tuple[set[int], list[int]]:
        """Take records of jobs, or what has changed of them.

        Return the numbers of these jobs, and of those that were forgotten.
        """
        touched: set[int] = set()
        for row in rows:
            self.jobs.setdefault(row["number"], {}).update(row)
            touched.add(row["number"])
        for number in sorted(touched, key=lambda one: self.jobs[one].get("t_run") or 0.0):
            self._settle(number, self.jobs[number])
        gone = [*self._ended][: max(0, len(self._ended) - self.most)]
        for number in gone:
            del self._ended[number], self.jobs[number]
        return touched - set(gone), gone

    def take_inside(self, rows: Iterable[Mapping[str, Any]]) -> tuple[set[str], list[str]]:
        """Take records of jobs inside of others, and return as `take` does."""
        touched: set[str] = set()
        for row in rows:
            # its ranks are those of its instance
            self.inside[row["id"]] = {**row, "number": row["id"], "ranks": None}
            touched.add(row["id"])
        gone = [*self.inside][: max(0, len(self.inside) - self.most)]
        for name in gone:
            del self.inside[name]
        return touched - set(gone), gone

    def running(self) -> dict[int, list[int]]:
        """Return the ranks of the jobs that run."""
        return {number: parse_idset(self.jobs[number].get("ranks") or "") for number in self._running}

    def lost(self, rows: Iterable[Mapping[str, Any]], now: float) -> list[Row]:
        """Return changes for the active jobs that a full list of jobs lacks."""
        missing = sorted(self.active - {row["number"] for row in rows})
        return [{"number": one, "state": "INACTIVE", "result": LOST_RESULT, "t_inactive": now} for one in missing]

    def _settle(self, number: int, job: Row) -> None:
        ranks, end = parse_idset(job.get("ranks") or ""), left_at(job)
        if "lanes" not in job:
            if ranks and job.get("t_run"):
                job["lanes"] = self.lanes.take(ranks, job["t_run"], end)
                self._running |= {number} if end is None else set()
        elif end is not None and number in self._running:
            self._running.remove(number)
            self.lanes.free(ranks, job["lanes"], end)
        if job.get("state") == "INACTIVE":
            job["result"] = result_of(job)
            self.active.discard(number)
            self._ended.setdefault(number)
        else:
            self.active.add(number)


def result_of(job: Mapping[str, Any]) -> str:
    """Return how a job that is over has ended, as Flux tells it (RFC 21), by what is known of it."""
    kind = (job.get("exception") or "").partition(":")[0]
    how = {"cancel": "CANCELED", "timeout": "TIMEOUT"}.get(kind, "FAILED" if kind else "")
    return job.get("result") or how or ("FAILED" if job.get("exit_code") else "COMPLETED")


def status_of(job: Mapping[str, Any]) -> str:
    """Return the state of a job in the words of `minicluster jobs`."""
    return of_job(job.get("state", "NEW"), job.get("result") or "")


def shown(job: Mapping[str, Any]) -> Row:
    """Return what a page shows of a job. Its number is a text: that of a browser has 53 bits."""
    return {
        "number": str(job["number"]),
        "id": job.get("id", ""),
        "name": job.get("name") or "",
        "status": status_of(job),
        "code": job.get("exit_code"),
        "exception": job.get("exception") or "",
        "nodes": job.get("nodes") or "",
        "ranks": job.get("ranks") or "",
        "lanes": job.get("lanes") or [],
        "cores": cores_of(job),
        "tasks": job.get("ntasks"),
        "submit": job.get("t_submit"),
        "run": job.get("t_run"),
        "end": left_at(job),
        "progress": job.get("progress"),
        "used": used.told(job),
        "inner": used.inner(job),
        "user": job.get("user") or {},
        "command": job.get("command") or "",
    }


#: Jobs at a time that have lanes on a node; more lie on each other
LANE_JOBS = 64


class Lanes:
    """The lanes of all nodes, and until when each is taken."""

    def __init__(self) -> None:
        self._ends: dict[int, list[float]] = {}

    def take(self, ranks: Iterable[int], start: float, end: float | None) -> list[int]:
        """Return the lane on each rank for a job that starts; without an ``end`` it stays there until `free`.

        Jobs come in the order of their starts, in seconds since the epoch.
        """
        return [self._take(self._ends.setdefault(rank, []), start, math.inf if end is None else end) for rank in ranks]

    def _take(self, ends: list[float], start: float, end: float) -> int:
        for lane, taken in enumerate(ends):
            if taken <= start:
                ends[lane] = end
                return lane
        if len(ends) < LANE_JOBS:
            ends.append(end)
        return len(ends) - 1

    def free(self, ranks: Iterable[int], lanes: Iterable[int], end: float) -> None:
        """Note that a job has left its lanes."""
        for rank, lane in zip(ranks, lanes, strict=False):
            self._ends[rank][lane] = end

    def count(self, rank: int) -> int:
        """Return how many lanes a node has, at least 1."""
        return max(1, len(self._ends.get(rank, ())))


#: The most samples that are kept
MOST_RECORDS = 4000


class Sample(NamedTuple):
    """The queue at a time, until the next sample."""

    t: float  #: seconds since the epoch
    waiting: int = 0  #: jobs
    running: int = 0
    cores: int = 0  #: that jobs use
    up: int = 0  #: nodes


#: A time, and by how much it changes the numbers of a sample
Step = tuple[float, Mapping[str, int]]


def cores_of(job: Mapping[str, Any]) -> int:
    """Return the cores of a job; where a record lacks them, its tasks."""
    return int(job.get("ncores") or job.get("ntasks") or 0)


def steps_of(job: Mapping[str, Any]) -> Iterator[Step]:
    """Yield how a job changes the queue."""
    submit, start, end = job.get("t_submit"), job.get("t_run"), left_at(job)
    if submit:
        yield submit, {"waiting": 1}
    if start:
        yield start, {"waiting": -1, "running": 1, "cores": cores_of(job)}
    if end and start:
        yield end, {"running": -1, "cores": -cores_of(job)}
    elif end:
        yield end, {"waiting": -1}


def curve(steps: Iterable[Step]) -> list[Sample]:
    """Return the samples of steps in any order."""
    samples: dict[float, Sample] = {}
    now = Sample(0.0)
    for when, change in sorted(steps, key=lambda step: step[0]):
        sums = {name: getattr(now, name) + change.get(name, 0) for name in Sample._fields[1:]}
        now = samples[when] = Sample(when, **sums)
    return thinned([*samples.values()])


def thinned(samples: list[Sample], most: int = MOST_RECORDS) -> list[Sample]:
    """Return at most so many samples, evenly over time; of those that are close the one with the most that runs."""
    if len(samples) <= most:
        return samples
    begin, end = samples[0].t, samples[-1].t
    width = (end - begin) / (most / 2) or math.inf
    kept: dict[int, Sample] = {}
    for sample in samples:
        place = int((sample.t - begin) / width)
        if place not in kept or sample.running >= kept[place].running:
            kept[place] = sample
    return [*list(kept.values())[: most - 1], samples[-1]]
