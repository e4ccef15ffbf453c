"""Which jobs run on this node, and which have: minicluster.lua notes when Flux's shell of a job begins and ends.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path
from typing import Iterator, NamedTuple

from node_jobs import JOB_SHELL, PROC

#: Seconds for which runs are known that have ended
PAST_SECONDS = 60.0


class Run(NamedTuple):
    """The time of a job on this node, in seconds of the machine's uptime; one that goes on ends never."""

    job: int
    begin: float
    end: float = math.inf

    def had(self, first: float, last: float) -> bool:
        """Return whether the job ran at some time between two."""
        return self.begin <= last and first <= self.end


def uptime() -> float:
    """Return the seconds since the machine's start, as minicluster.lua notes them."""
    return float((PROC / "uptime").read_text().split()[0])


class Notes:
    """Reads the file of the notes, to which lines are added; when it is full, a new one takes its place."""

    def __init__(self, path: Path) -> None:
        """Take the path of the file, which need not be there yet."""
        self.path = path
        self.read = (-1, 0)  #: the inode of the newer file, and how much of it was read
        self.running: dict[int, Run] = {}  #: by the process of the shell
        self.ends: dict[int, float] = {}  #: the noted ends, by the process
        self.past: list[Run] = []

    def look(self) -> set[int]:
        """Return the jobs that have ended on this node since the last look. Raises OSError."""
        now = uptime()
        self.past = [run for run in self.past if run.end > now - PAST_SECONDS]
        known = len(self.past)
        for line in self._lines():
            job, shell, *times = line.split()
            if times[1:]:
                self.ends[int(shell)] = float(times[1])
            else:
                self._end(int(shell), now)  # an earlier shell had this id
                self.running[int(shell)] = Run(int(job), float(times[0]))
        for pid in [pid for pid in self.running if not _is_shell(pid)]:
            self._end(pid, now)
        return {run.job for run in self.past[known:]} - self.jobs()

    def jobs(self) -> set[int]:
        """Return the jobs that run."""
        return {run.job for run in self.running.values()}

    def age(self) -> float:
        """Return the seconds since the last job that runs has begun here; without one, since the machine's start."""
        return uptime() - max((run.begin for run in self.running.values()), default=0.0)

    def had(self, first: float, last: float) -> set[int]:
        """Return the jobs that ran at some time between two."""
        return {run.job for run in (*self.running.values(), *self.past) if run.had(first, last)}

    def _end(self, pid: int, now: float) -> None:
        if pid in self.running:
            self.past.append(self.running.pop(pid)._replace(end=self.ends.pop(pid, now)))

    def _lines(self) -> Iterator[str]:
        """Yield the lines that are new."""
        before, now = self.read, (-1, 0)
        for path in (self.path.with_name(f"{self.path.name}.old"), self.path):
            now = (-1, 0)
            with suppress(FileNotFoundError), path.open("rb") as file:
                inode = os.fstat(file.fileno()).st_ino
                # the older file is new here only if it took its place since the last look
                begin = before[1] if inode == before[0] else 0 if path == self.path or before == (-1, 0) else None
                if begin is not None:
                    file.seek(begin)
                    yield from filter(None, file.read().decode("ascii").split("\n"))
                now = inode, file.tell()
        self.read = now


def _is_shell(pid: int) -> bool:
    try:
        return (PROC / f"{pid}/comm").read_text().strip() == JOB_SHELL
    except OSError:
        return False
