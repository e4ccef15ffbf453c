"""The jobs that lost their node, which the lead may be about to put back (losses.py).

A module of remote.py: runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import time
from typing import Any, Iterator

from flux.job import JobID
from job_record import copies_after

#: Seconds in which the lead puts a job back that lost its node; one that has just come back has these to look at all
LOST_SECONDS, LOOK_BACK_SECONDS = 10.0, 120.0


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
        self.handle, self.begin = handle, time.monotonic()
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
        is_begun = now > self.begin + LOOK_BACK_SECONDS or has_looked(self.handle)
        copies = copies_after(self.handle, min(job.job for _, job in self.jobs))
        jobs, self.jobs = self.jobs, []
        for end, job in jobs:
            copy = copies.get(JobID(job.job).f58plain)
            if copy is None and (now < end or not is_begun):
                self.jobs.append((end if is_begun else now + LOST_SECONDS, job))
            else:
                yield job, copy
