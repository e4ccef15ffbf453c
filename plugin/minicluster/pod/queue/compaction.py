"""Lets Flux remove from its content store what no job needs any more: each job leaves some 25 KiB of it behind.

By `flux gc` of flux-core 0.87 and later, while jobs run; it may be killed at any time. The store's file doesn't shrink:
later jobs use the room.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from offers import can_compact
from saved import state_folder
from state import job_counts

#: Jobs that have ended after which the store is compacted, at least; those that Flux keeps are read each time
LEAST_JOBS = 5000
#: Bytes of a former lead's store that is compacted at the start
FORMER_BYTES = 128 << 20
COMMAND = ("flux", "gc", "--no-cache")


class Compaction:
    """Compacts the store again and again, each time by a process that nobody waits for."""

    def __init__(self, handle: Any) -> None:
        """Look whether this Flux can, and how large the store is. Raises OSError."""
        self.handle, self.offered = handle, can_compact(handle)
        self.last: int | None = None if _store_bytes(handle) > FORMER_BYTES else 0
        self.process: subprocess.Popen[str] | None = None

    def look(self, ended: int) -> str:
        """Compact if it is time; ``ended`` counts the jobs that have ended. Return why the last time failed, or "".

        Raises OSError.
        """
        problem = ""
        if self.process and self.process.poll() is not None:
            said = self.process.communicate()[1].strip().split("\n")[-1]
            problem = f"Flux's content store can't be compacted: {said}" if self.process.returncode else ""
            self.process = None
        if self.offered and not self.process and (self.last is None or self._is_time(ended - self.last)):
            self.last = ended
            self.process = subprocess.Popen(COMMAND, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        return problem

    def _is_time(self, ended: int) -> bool:
        return ended >= LEAST_JOBS and ended >= job_counts(self.handle)["inactive"]


def _store_bytes(handle: Any) -> int:
    """Return the size of the store's file, 0 if there is none. Raises OSError for a broker that is gone."""
    try:
        return Path(state_folder(handle), "content.sqlite").stat().st_size
    except FileNotFoundError:
        return 0
