"""The jobs of a picture: what is known of each, and the lanes of its bar. Those that ended first are forgotten."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from minicluster.cluster.states import of_job
from minicluster.flux import parse_idset
from minicluster.picture.curves import cores_of
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
