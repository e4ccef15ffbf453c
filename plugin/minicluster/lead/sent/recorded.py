"""The ends of a client's jobs that Flux does not tell: of those that it has forgotten, from the lead's history.

One that has lost its node has ended only if the lead does not put it back (losses.py).
A module of remote.py: runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping

from described import KEY_ATTRIBUTE
from flux.job import JobID
from history import History, folder
from inner_jobs import records_inside
from job_record import TIMES, copies_after

if TYPE_CHECKING:
    from replies import Replies

#: Seconds between two looks, each of which reads the whole history for all jobs that are looked for
RECORDS_SECONDS = 1.0
#: What stands for the output of a job that Flux no longer has, or had no more when it was read
GONE = "minicluster: Flux no longer has the output of this job, or a part of it\n"
MARK = re.compile(f'"{KEY_ATTRIBUTE}": "([^"]*)"')
#: Seconds in which the lead puts a job back that lost its node; one that has just come back has these to look at all
LOST_SECONDS, LOOK_BACK_SECONDS = 10.0, 120.0


def inside(handle: Any, ended: bool) -> Iterator[dict[str, Any]]:
    """Yield the records of the jobs inside of jobs that run, with ``ended`` also of those that have ended."""
    return (each for each in records_inside(handle) if ended or each["state"] != "INACTIVE")


class Recorded:
    """Looks for the records of jobs by the keys of their requests."""

    def __init__(self, reply: Replies) -> None:
        self.reply = reply
        self.wanted: dict[str, Callable[[], Any]] = {}

    def want(self, key: str, otherwise: Callable[[], Any], job: int | None = None) -> None:
        """Reply with the end of a job at the next look; do something else if it isn't recorded.

        It is the job with this key, or with an id.
        """
        record = None if job is None else History(folder()).record(job)
        if record:
            self._tell(key, record)
        else:
            self.wanted[key] = otherwise

    def look(self, *_: Any) -> None:
        """Look for all of them."""
        wanted, self.wanted = self.wanted, {}
        if not wanted:
            return
        for line, record in History(folder()).find(MARK):
            if line[1] in wanted:
                with suppress(KeyError):
                    self._tell(line[1], record)
                    del wanted[line[1]]
        for otherwise in wanted.values():
            otherwise()

    def _tell(self, key: str, record: Mapping[str, Any]) -> None:
        end = end_of(record)
        self.reply(key=key, id=JobID(record["number"]).f58)
        self.reply(key=key, end=end)


def end_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a job ended, as followed.py does. Raises KeyError."""
    code, (kind, _, note) = record["exit_code"], (record.get("exception") or "").partition(": ")
    return {
        "status": None if code is None else code << 8,
        "exception": {"type": kind, "note": note} if kind else None,
        # a job that never ran has no output
        "output": [] if code is None else [("stderr", GONE)],
        "usage": record.get("usage"),
        "nodes": record.get("nodes") or "",
        "times": [record.get(at) for at in TIMES],
    }


def has_looked(handle: Any) -> bool:
    """Say whether this lead has put back what was lost with the one before; true if its version does not tell."""
    import flux.kvs

    try:
        from losses import BEGUN_KEY  # of the lead's own version
    except ImportError:
        return True
    try:
        return float(flux.kvs.get(handle, BEGUN_KEY)) >= float(handle.attr_get("broker.starttime"))
    except (OSError, ValueError, TypeError):
        return False


class Lost:
    """Jobs that lost their node, each until it has a copy, or gets none."""

    def __init__(self, handle: Any) -> None:
        self.handle, self.begin, self.has_looked = handle, time.monotonic(), False
        self.jobs: list[tuple[float, Any]] = []  #: until when each may get one

    def add(self, job: Any) -> None:
        """Add a job, which has its number as ``job``."""
        self.jobs.append((time.monotonic() + LOST_SECONDS, job))

    def look(self) -> Iterator[tuple[Any, int | None]]:
        """Yield the jobs that have a copy, with that, and those that get none, with None. Raises OSError."""
        if not self.jobs:
            return
        now = time.monotonic()
        # what it puts back may be listed later
        self.has_looked = self.has_looked or now > self.begin + LOOK_BACK_SECONDS or has_looked(self.handle)
        copies = copies_after(self.handle, min(job.job for _, job in self.jobs))
        jobs, self.jobs = self.jobs, []
        for end, job in jobs:
            copy = copies.get(JobID(job.job).f58plain)
            if copy is None and (now < end or not self.has_looked):
                self.jobs.append((end if self.has_looked else now + LOST_SECONDS, job))
            else:
                yield job, copy
