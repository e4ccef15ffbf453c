"""guard.py FOLDER RESERVE HOST RUN [own]: takes away what ended jobs leave, and ends a job that takes the memory.

FOLDER is /sys/fs/cgroup, RESERVE what jobs must leave of the container's limit, in bytes, and RUN the broker's run
folder. ``own`` says that /dev/shm is this container's alone. With a reserve it ends the job that has most of the
memory, by an exception of the type `memory`, before the kernel ends the container. What runs outside of jobs is left
alone.
Runs with the Python of the Flux view, 3.8 or later; it stays in memory, so it imports little.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple, Sequence

from epilog import Epilog
from node_jobs import jobs, largest, resident, taken
from node_words import f58, say, size
from processes import send_to_all

#: Pause between two looks: a program takes 0.2 GB in it at most. Seconds for which processes that were killed may end
LOOK_POLL_SECONDS, FREE_SECONDS = 0.2, 5.0
#: Pause between two looks for what ended jobs have left
EPILOG_SECONDS = 1.0


class Memory(NamedTuple):
    """The files of a container's memory (cgroups(7)). The kernel takes the cache of files back before it kills."""

    limited: Path
    used: Path
    parts: Path
    caches: tuple[str, str]

    def limit(self) -> int:
        """Return the limit in bytes, which may change while the container runs; 0 without one. Raises OSError."""
        found = self.limited.read_text().strip()
        # without a limit, version 1 has a number that is larger than any memory
        return int(found) if found.isdecimal() and int(found) < 1 << 60 else 0

    def left(self, cached: int = 0) -> int:
        """Return the bytes of the limit that are left, if a part of what is taken is cache. Raises OSError."""
        return self.limit() - int(self.used.read_text()) + cached

    def is_short_of(self, reserve: int) -> bool:
        """Return whether less than a reserve is left: most looks read two numbers. Raises OSError."""
        return self.left() < reserve and self.left(self.cached()) < reserve

    def cached(self) -> int:
        """Return the bytes of the cache of files. Raises OSError."""
        pairs = (line.split() for line in self.parts.read_text().split("\n") if line)
        return sum(int(number) for name, number in pairs if name in self.caches)


def memory_of(folder: Path) -> Memory:
    """Return the files of version 2 or 1, whichever is there."""
    if (folder / "memory.current").exists():
        new = (folder / "memory.max", folder / "memory.current", folder / "memory.stat")
        return Memory(*new, ("active_file", "inactive_file"))
    folder /= "memory"
    old = (folder / "memory.limit_in_bytes", folder / "memory.usage_in_bytes", folder / "memory.stat")
    return Memory(*old, ("total_active_file", "total_inactive_file"))


def wait_for_end(pids: Sequence[int]) -> None:
    """Wait until processes have ended, so that their memory is free."""
    end = time.monotonic() + FREE_SECONDS
    while time.monotonic() < end and any(map(resident, pids)):
        time.sleep(LOOK_POLL_SECONDS / 10)


def end_largest(memory: Memory, reserve: int, host: str, run: Path, epilog: Epilog) -> bool:
    """End the job that has most of the memory; say whether there was one. Raises OSError."""
    found = jobs()
    if not found:
        return False
    shared, _ = epilog.shared(found)
    job = largest(found, shared)
    # at once, since it takes more while it is told
    send_to_all(found[job], signal.SIGSTOP)
    took = min(taken(found[job], shared.get(job, 0)), memory.limit())
    why = (
        f"took {size(took)} of {size(memory.limit())} on {host}, where flux.memoryReserve keeps "
        f"{size(reserve)}: it ended before the kernel would end all of the container"
    )
    say(f"job {f58(job)} {why}")
    try:
        raise_exception(run, job, why)
    except (OSError, StopIteration) as error:
        say(f"Flux could not be told of job {f58(job)}: {error}")
    finally:
        # what it has started meanwhile, too
        last = jobs().get(job, []) + found[job]
        send_to_all(last, signal.SIGKILL)
        wait_for_end(last)
    return True


def raise_exception(run: Path, job: int, why: str) -> None:
    """Have Flux end a job, and say why. Raises OSError, StopIteration."""
    import flux

    os.environ["FLUX_URI"] = f"local://{next(run.glob('local*'))}"
    handle: Any = flux.Flux()
    handle.rpc("job-manager.raise", {"id": job, "type": "memory", "severity": 0, "note": why}).get()


def main(folder: Path, reserve: int, host: str, run: Path, is_own: bool) -> None:
    """Look until it is told to stop. Raises OSError."""
    memory, epilog, was_short, looked = memory_of(folder), Epilog(run.parent, is_own), False, -EPILOG_SECONDS
    if reserve and not memory.limit():
        sys.exit("minicluster: flux.memoryReserve: this container has no limit of memory; set resources.limits.memory")
    if not reserve:
        # nothing is in a hurry
        os.nice(10)
    while True:
        is_short = bool(reserve) and memory.is_short_of(reserve)
        if is_short or time.monotonic() >= looked + EPILOG_SECONDS:
            epilog.look()
            looked = time.monotonic()
            is_short = is_short and memory.is_short_of(reserve)
        if is_short and not end_largest(memory, reserve, host, run, epilog) and not was_short:
            say(f"what runs outside of jobs leaves {size(memory.left(memory.cached()))} of memory")
        was_short = is_short
        time.sleep(LOOK_POLL_SECONDS if reserve else EPILOG_SECONDS)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]), sys.argv[5:] == ["own"])
