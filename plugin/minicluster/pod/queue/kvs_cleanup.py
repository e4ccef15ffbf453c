"""Removes what Flux leaves behind of jobs: empty directories of its KVS, and what no job needs of its content store.

Of each job some 25 KiB stay in the store.

The key of a job has the sixteen digits of its id in four parts, below the directory `job`. The first eight count the
time in steps of 256 ms. So a directory of the first part gets a name for each step in which a job was submitted, and
each event of a job writes it anew: with the names of hours a job would cost more and more memory, disk and time.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, Iterator, Mapping

from offers import can_compact
from saved import state_folder
from state import job_counts, jobs

#: Jobs that have ended after which the store is compacted, at least; those that Flux keeps are read each time
LEAST_JOBS = 5000
#: Bytes of a former lead's store that is compacted at the start
FORMER_BYTES = 128 << 20
COMMAND = ("flux", "gc", "--no-cache")
#: What an id is divided by for its step, and how long that lasts
STEP_FACTOR, STEP_SECONDS = 1 << 32, 0.256
#: For so long the directory of a new job may still be empty
NEW_SECONDS = 60.0
STEP = re.compile("[0-9a-f]{8}")
#: Directories that are removed at once
BATCH_NAMES = 200


class Compaction:
    """Compacts the content store again and again, each time by a process that nobody waits for.

    By `flux gc` of flux-core 0.87 and later, while jobs run; it may be killed at any time. The store's file doesn't
    shrink: later jobs use the room.
    """

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


def remove_empty_directories(handle: Any) -> None:
    """Remove the empty directories of steps before those of the last minute. Raises OSError."""
    import flux.kvs

    known = {job["id"] // STEP_FACTOR for state in ("active", "inactive") for job in jobs(handle, state, [])}
    end = max(known, default=0) - NEW_SECONDS / STEP_SECONDS
    keys = [key for step, key in _steps(handle) if step < end and step not in known and _is_empty(handle, key)]
    for first in range(0, len(keys), BATCH_NAMES):
        for key in keys[first : first + BATCH_NAMES]:
            flux.kvs.put_unlink(handle, key)
        flux.kvs.commit(handle)


def _steps(handle: Any) -> Iterator[tuple[int, str]]:
    """Yield each step that has a directory, and its key."""
    for first in _names(handle, "job"):
        for second in _names(handle, f"job.{first}"):
            # there may be other names
            if STEP.fullmatch(first + second):
                yield int(first + second, 16), f"job.{first}.{second}"


def _is_empty(handle: Any, key: str) -> bool:
    """Say whether a step's directory has nothing but empty ones; equal ones are looked at once."""
    seen: list[Any] = []
    for name, entry in _names(handle, key).items():
        if entry not in seen:
            if _names(handle, f"{key}.{name}"):
                return False
            seen.append(entry)
    return True


def _names(handle: Any, key: str) -> Mapping[str, Any]:
    """Return what a directory has, by name; {} if there is none."""
    from flux import constants

    asked = {"key": key, "flags": constants.FLUX_KVS_READDIR, "namespace": "primary"}
    try:
        names: Mapping[str, Any] = handle.rpc("kvs.lookup", asked).get()["val"]["data"]
    except FileNotFoundError:
        return {}
    return names
