"""guard.py FOLDER RESERVE HOST RUN: ends a job that takes its container's memory before the kernel ends the container.

FOLDER is /sys/fs/cgroup, RESERVE what jobs must leave of the container's limit, in bytes, and RUN the broker's run
folder. It ends the job that has most of the memory, by an exception of the type `memory`. What runs outside of jobs is
left alone. Runs with the Python of the Flux view, 3.8 or later; it stays in memory, so it imports little.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Iterable, NamedTuple, Sequence

from node_jobs import jobs, largest, resident, taken

#: Pause between two looks: a program takes 0.2 GB in it at most. Seconds for which processes that were killed may end
LOOK_POLL_SECONDS, FREE_SECONDS = 0.2, 5.0


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


def tell(pids: Iterable[int], number: int) -> None:
    """Send a signal to processes that may have ended."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def wait_for_end(pids: Sequence[int]) -> None:
    """Wait until processes have ended, so that their memory is free."""
    end = time.monotonic() + FREE_SECONDS
    while time.monotonic() < end and any(map(resident, pids)):
        time.sleep(LOOK_POLL_SECONDS / 10)


def say(text: str) -> None:
    """Tell the pod's log."""
    print(f"minicluster: {text}", file=sys.stderr, flush=True)


def size(number: int) -> str:
    """Return bytes as people write them.

    >>> size(2 << 30), size(1717986918), size(300 << 20)
    ('2 GiB', '1.6 GiB', '300 MiB')
    """
    unit, scale = ("GiB", 1 << 30) if number >= 1 << 30 else ("MiB", 1 << 20)
    return f"{number / scale:.1f}".replace(".0", "") + f" {unit}"


def end_largest(memory: Memory, reserve: int, host: str, run: Path) -> bool:
    """End the job that has most of the memory; say whether there was one."""
    found = jobs()
    if not found:
        return False
    job = largest(found, {})
    # at once, since it takes more while it is told
    tell(found[job], signal.SIGSTOP)
    took = min(taken(found[job]), memory.limit())
    why = (
        f"took {size(took)} of {size(memory.limit())} on {host}, where flux.memoryReserve keeps "
        f"{size(reserve)}: it ended before the kernel would end all of the container"
    )
    try:
        raise_exception(run, job, why)
    except (OSError, StopIteration) as error:
        say(f"job {job} {why}, and Flux could not be told: {error}")
    finally:
        # what it has started meanwhile, too
        last = jobs().get(job, []) + found[job]
        tell(last, signal.SIGKILL)
        wait_for_end(last)
    return True


def raise_exception(run: Path, job: int, why: str) -> None:
    """Have Flux end a job, and say why, there and in the pod's log. Raises OSError, StopIteration."""
    import flux
    from flux.job import JobID

    say(f"job {JobID(job).f58plain} {why}")
    os.environ["FLUX_URI"] = f"local://{next(run.glob('local*'))}"
    handle: Any = flux.Flux()
    handle.rpc("job-manager.raise", {"id": job, "type": "memory", "severity": 0, "note": why}).get()


def main(folder: Path, reserve: int, host: str, run: Path) -> None:
    """Look until it is told to stop. Raises OSError."""
    memory, was_short = memory_of(folder), False
    if not memory.limit():
        sys.exit("minicluster: flux.memoryReserve: this container has no limit of memory; set resources.limits.memory")
    while True:
        is_short = memory.is_short_of(reserve)
        if is_short and not end_largest(memory, reserve, host, run) and not was_short:
            say(f"what runs outside of jobs leaves {size(memory.left(memory.cached()))} of memory")
        was_short = is_short
        time.sleep(LOOK_POLL_SECONDS)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
