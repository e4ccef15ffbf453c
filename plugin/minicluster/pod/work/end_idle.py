"""end_idle.py SECONDS: ends when for so many seconds no job has waited or run, and nobody was connected.

Whoever has a shell on the lead, follows a job or uses the SDK has a process there. Runs on the lead, with the Python of
the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import flux
from node_jobs import is_here
from state import job_counts

PROC = Path("/proc")
#: Pause between two looks
IDLE_POLL_SECONDS = 5.0


def parent(pid: int) -> int | None:
    """Return the parent of a process, 0 for one from outside of the container; None once it has ended."""
    with suppress(OSError, IndexError, ValueError):
        return int((PROC / f"{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return None


def connected() -> set[int]:
    """Return the processes that somebody has started in this container from outside, such as `kubectl exec`."""
    own = os.getpid()
    while above := parent(own):
        own = above
    pids = (int(folder.name) for folder in PROC.glob("[0-9]*"))
    return {pid for pid in pids if pid != own and parent(pid) == 0 and is_here(pid)}


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
