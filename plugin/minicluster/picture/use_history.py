"""What jobs have used over time, by node, by job and in all, beside what was reserved: a bounded part of it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from minicluster.flux import parse_idset
from minicluster.picture.job_history import cores_of

#: Points of a series that are kept, and series of jobs
USE_RECORDS, USE_JOBS = 160, 200
MIB_BYTES = 1 << 20
#: The series of all nodes; those of nodes and jobs are called after them
ALL, NODE, JOB = "all", "node ", "job "


class Had(NamedTuple):
    """The cores of a job on a node."""

    rank: int
    number: int
    cores: float


class Point(NamedTuple):
    """What was used at a time, and since the point before."""

    t: float  #: seconds since the epoch
    cores: float  #: kept busy, on average
    memory: int  #: MiB
    reserved: float  #: cores of jobs that run
    limit: int  #: MiB of memory, 0 without a limit


def of_node(rank: int) -> str:
    """Return the name of a node's series."""
    return f"{NODE}{rank}"


def of_job(number: int) -> str:
    """Return the name of a job's series."""
    return f"{JOB}{number}"


class UseHistory:
    """Series of points by name, and what has changed of them since the last `changes`."""

    def __init__(self) -> None:
        self.series: dict[str, list[Point]] = {}
        self._same: dict[str, int] = {}  # the first point of each that was not told
        self._gone: list[str] = []
        self._seen: dict[tuple[int, int], tuple[float, float]] = {}  # node's time and CPU seconds, by rank and job
        self._now: dict[tuple[int, int], tuple[float, int]] = {}  # cores and MiB, by rank and job
        self._limits: dict[int, int] = {}

    def take(
        self,
        told: Mapping[str, Mapping[str, Any]],
        jobs: Mapping[int, Mapping[str, Any]],
        up: set[int],
        now: float,
    ) -> None:
        """Take what nodes tell of the jobs that run, which are by number.

        ``up`` are the nodes that are there, and ``now`` is the lead's time.
        """
        for rank, said in told.items():
            for number, job in jobs.items():
                # a file that a job has written over is as good as none
                with suppress(KeyError, TypeError, ValueError):
                    self._see(int(rank), number, said["time"], said["jobs"][str(number)], job.get("t_run"))
        self._now = {key: use for key, use in self._now.items() if key[1] in jobs}
        self._seen = {key: seen for key, seen in self._seen.items() if key[1] in jobs}
        had: dict[str, list[Had]] = {ALL: [], **{of_node(rank): [] for rank in self._limits}}
        for number, job in jobs.items():
            for each in (Had(rank, number, cores) for rank, cores in _reserved(job).items() if rank in self._limits):
                for name in (ALL, of_node(each.rank), of_job(number)):
                    had.setdefault(name, []).append(each)
        for name, those in had.items():
            nodes = {each.rank for each in those} if name.startswith(JOB) else _nodes(name, self._limits, up)
            self._add(name, now, those, sum(self._limits[rank] for rank in nodes))
        self._forget()

    def _see(self, rank: int, number: int, when: float, used: Mapping[str, Any], started: float | None) -> None:
        """Take what a node tells of a job. Raises KeyError, TypeError, ValueError."""
        before, cpu_before = self._seen.get((rank, number), (started, 0.0))
        cpu, memory = used["cpu_seconds"], used["memory"]
        if not math.isfinite(when + cpu + memory):
            raise ValueError(when)
        if before is not None and when > before:  # else it has not looked again
            self._seen[rank, number] = when, cpu
            self._now[rank, number] = max(0.0, cpu - cpu_before) / (when - before), int(memory) // MIB_BYTES
            self._limits[rank] = int(used["memory_limit"]) // MIB_BYTES

    def _add(self, name: str, now: float, had: Sequence[Had], limit: int) -> None:
        """Add a point to a series: what jobs use on nodes where they have cores."""
        uses = [self._now.get((each.rank, each.number), (0.0, 0)) for each in had]
        cores, memory = round(sum(each for each, _ in uses), 2), sum(each for _, each in uses)
        point = Point(round(now, 1), cores, memory, round(sum(each.cores for each in had), 2), limit)
        points = self.series.setdefault(name, [])
        if len(points) > 1 and points[-1][1:] == points[-2][1:] == point[1:]:
            points.pop()
        points.append(point)
        if len(points) > USE_RECORDS:
            points[:] = _halved(points)
            self._same[name] = 0
        self._same[name] = min(self._same.get(name, 0), len(points) - 1)

    def _forget(self) -> None:
        names = [name for name in self.series if name.startswith(JOB)]
        for name in names[: max(0, len(names) - USE_JOBS)]:
            del self.series[name]
            self._same.pop(name, None)
            self._gone.append(name)

    def all(self) -> dict[str, Any]:
        """Return all that is known, as a page takes it: points by series, and how many before them stay."""
        return {name: {"keep": 0, "points": points} for name, points in self.series.items()}

    def changes(self) -> dict[str, Any]:
        """Return what has changed since the last call; a series without points is gone."""
        changed = {
            name: {"keep": first, "points": self.series[name][first:]}
            for name, first in self._same.items()
            if first < len(self.series[name])
        }
        changed |= {name: {"keep": 0, "points": []} for name in self._gone}
        self._same, self._gone = {name: len(points) for name, points in self.series.items()}, []
        return changed


def _nodes(name: str, known: Iterable[int], up: set[int]) -> list[int]:
    """Return the nodes of the series of a node, or of all."""
    return [rank for rank in known if (rank in up if name == ALL else name == of_node(rank))]


def _reserved(job: Mapping[str, Any]) -> dict[int, float]:
    """Return the cores that a job has, by rank: nodes have the same share, which holds for most jobs."""
    ranks = parse_idset(job.get("ranks") or "")
    return dict.fromkeys(ranks, cores_of(job) / max(1, len(ranks)))


def _halved(points: Sequence[Point]) -> list[Point]:
    """Return each two points as one, with the most memory; the last one stays."""
    pairs = zip(points[:-1:2], points[1:-1:2], strict=False)
    merged = [b._replace(memory=max(a.memory, b.memory), cores=round((a.cores + b.cores) / 2, 2)) for a, b in pairs]
    return [*merged, points[-1]]
