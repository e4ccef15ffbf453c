"""The ends of a client's jobs that Flux has forgotten, from the lead's history.

A module of remote.py: runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping

from described import KEY_ATTRIBUTE
from flux.job import JobID
from history import History, folder
from inner_jobs import records_inside
from job_record import TIMES

if TYPE_CHECKING:
    from replies import Replies

#: Seconds between two looks, each of which reads the whole history for all jobs that are looked for
RECORDS_SECONDS = 1.0
#: What stands for the output of a job that Flux no longer has, or had no more when it was read
GONE = "minicluster: Flux no longer has the output of this job, or a part of it\n"
MARK = re.compile(f'"{KEY_ATTRIBUTE}": "([^"]*)"')


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
