"""end_idle.py SECONDS: ends when for so many seconds no job has waited or run, and nobody was connected.

Whoever has a shell on the lead, follows a job or uses the SDK has a process there. Runs on the lead, with the Python of
the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import flux
from node_jobs import children, descendants, is_here
from state import job_counts

#: Pause between two looks
IDLE_POLL_SECONDS = 5.0


def connected() -> set[int]:
    """Return the processes that somebody has started in this container from outside, such as `kubectl exec`."""
    of = children()
    # they have no parent here, as the container's own first one, which this program comes from
    return {pid for pid in of.get(0, []) if os.getpid() not in descendants([pid], of) and is_here(pid)}


class Idleness:
    """Since when nothing has happened."""

    def __init__(self, handle: Any) -> None:
        self.handle, self.since = handle, time.monotonic()
        self.ended, self.there = -1, set()  # type: int, set[int]

    def look(self) -> float:
        """Return for how many seconds nothing has happened. Raises OSError."""
        counts, there = job_counts(self.handle), connected()
        ended = counts["inactive"] + counts["purged"]
        active = sum(counts[state] for state in ("depend", "priority", "sched", "run", "cleanup"))
        # a probe of Kubernetes is not there twice
        if active or ended != self.ended or there & self.there:
            self.since = time.monotonic()
        self.ended, self.there = ended, there
        return time.monotonic() - self.since


def main(seconds: float) -> None:
    """Return when nothing has happened for so long. Raises OSError."""
    idleness = Idleness(flux.Flux())
    while (left := seconds - idleness.look()) > 0:
        time.sleep(min(left, IDLE_POLL_SECONDS))


if __name__ == "__main__":
    main(float(sys.argv[1]))
