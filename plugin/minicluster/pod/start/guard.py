"""guard.py FOLDER RESERVE HOST RUN [OWN IDLE]: takes away what ended jobs leave, and ends a job that takes the memory.

It also notes how much memory each job takes (job_peaks.py), and finds jobs that do nothing (idle_jobs.py).

FOLDER is /sys/fs/cgroup, RESERVE what jobs must leave of the container's limit, in bytes, and RUN the broker's run
folder. OWN says that /dev/shm is this container's alone, IDLE which jobs are idle; both may be empty. With a reserve it
ends the job that has most of the memory, by an exception of the type `memory`, before the kernel ends the container.
What runs outside of jobs is left alone: where what is short is no job's, the node takes no more jobs until it is free.
Runs with the Python of the Flux view, 3.8 or later; it stays in memory, so it imports little.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Mapping, NamedTuple, Sequence

from epilog import Epilog
from idle_jobs import IdleJobs, limits_of
from job_peaks import Peaks
from node_jobs import Jobs, jobs, largest, most, outside, resident, send_to_all, taken
from node_state import FluxNode, Held, f58, say, size

#: Pause between two looks: a program takes 0.2 GB in it at most. Seconds for which processes that were killed may end
LOOK_POLL_SECONDS, FREE_SECONDS = 0.2, 5.0
#: Pause between two looks for what ended jobs have left
EPILOG_SECONDS = 1.0
#: How many times as long as a judgement the pause after it is, while the node takes no jobs: so 5 % of a core at most
JUDGE_FACTOR = 20


class Memory(NamedTuple):
    """The files of a container's memory (cgroups(7)). The kernel takes the cache of files back before it kills."""

    limited: Path
    used: Path
    parts: Path
    caches: tuple[str, str]

    def limit(self) -> int:
        """Return the limit in bytes, which may change while the container runs; 0 without one. Raises OSError."""
        text = self.limited.read_text().strip()
        # without a limit, version 1 has a number that is larger than any memory
        return int(text) if text.isdecimal() and int(text) < 1 << 60 else 0

    def known_limit(self) -> int:
        """Return the limit, 0 where there is none or the kernel does not tell it."""
        try:
            return self.limit()
        except OSError:
            return 0

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


class Guard:
    """Decides what becomes of a shortage of memory."""

    def __init__(self, memory: Memory, reserve: int, host: str, run: Path, epilog: Epilog) -> None:
        self.memory, self.reserve, self.host, self.epilog = memory, reserve, host, epilog
        self.node = FluxNode(run)
        #: The bytes that were short when the node was drained, 0 while it isn't; until when not to judge again
        self.drained = 0
        self.next_judgement = 0.0

    def look(self) -> None:
        """End a job, or let the node take no more, if the memory is short. Raises OSError."""
        is_short = self.memory.is_short_of(self.reserve)
        begin = time.monotonic()
        if (is_short or self.drained) and begin >= self.next_judgement:
            self.judge() if is_short else self.lift()
            end = time.monotonic()
            self.next_judgement = end + JUDGE_FACTOR * (end - begin) if self.drained else 0.0

    def judge(self) -> None:
        """End the job that has most of the memory, unless what is short is held by none. Raises OSError."""
        of_jobs = jobs()
        shared, rest = self.epilog.shared(of_jobs)
        held, needed = self.held(of_jobs, shared, rest), self.reserve - self.memory.left(self.memory.cached())
        if needed <= 0:
            return
        job = largest(of_jobs, shared) if of_jobs else 0
        took = taken(of_jobs[job], shared.get(job, 0)) if of_jobs else 0
        could_help = most(of_jobs, shared) >= needed
        if could_help and (took > held.all or needed > self.reserve / 2):
            self.end(job, of_jobs[job], took)
        elif not self.drained and self.node.drain(held.why):
            self.drained = needed
            say(f"memory is short, {held.why}: no job is ended, and the node takes no more until that is free")

    def lift(self) -> None:
        """Let the node take jobs again when as much is free beyond the reserve as was short. Raises OSError."""
        free = self.memory.left(self.memory.cached()) - self.reserve
        if free >= self.drained and self.node.undrain():
            self.drained = 0
            say("memory is free again: the node takes jobs")

    def held(self, of_jobs: Jobs, shared: Mapping[int, int], rest: int) -> Held:
        """Return what is no job's of the memory that is taken. Raises OSError."""
        used = self.memory.limit() - self.memory.left(self.memory.cached())
        processes = outside({pid for pids in of_jobs.values() for pid in pids})
        return Held(rest, processes, max(0, used - most(of_jobs, shared) - rest - processes))

    def end(self, job: int, pids: Sequence[int], took: int) -> None:
        """End a job by name, with all that it has started. Raises OSError."""
        # at once, since it takes more while it is told
        send_to_all(pids, signal.SIGSTOP)
        limit = self.memory.limit()
        why = (
            f"took {size(min(took, limit))} of {size(limit)} on {self.host}, where flux.memoryReserve keeps "
            f"{size(self.reserve)}: it ended before the kernel would end all of the container"
        )
        say(f"job {f58(job)} {why}")
        try:
            self.node.end_job(job, why)
        finally:
            # what it has started meanwhile, too
            last = [*jobs().get(job, []), *pids]
            send_to_all(last, signal.SIGKILL)
            end = time.monotonic() + FREE_SECONDS
            while time.monotonic() < end and any(map(resident, last)):
                time.sleep(LOOK_POLL_SECONDS / 10)


def main(folder: Path, reserve: int, host: str, run: Path, more: Sequence[str]) -> None:
    """Look until it is told to stop. Raises OSError."""
    # a script of an older version, which lives in its pod, gives fewer words
    own, idle = (*more, "", "")[:2]
    memory, epilog, looked = memory_of(folder), Epilog(run.parent, bool(own)), -EPILOG_SECONDS
    if reserve and not memory.limit():
        sys.exit("minicluster: flux.memoryReserve: this container has no limit of memory; set resources.limits.memory")
    if not reserve:
        # nothing is in a hurry
        os.setpriority(os.PRIO_PROCESS, 0, 10)
    guard, peaks = Guard(memory, reserve, host, run, epilog), Peaks(run.parent / "usage", memory.known_limit())
    idle_jobs, has_begun = IdleJobs(limits_of(idle), guard.node) if idle else None, True
    while True:
        is_short = bool(reserve) and memory.is_short_of(reserve)
        if (is_short and not guard.drained) or has_begun or time.monotonic() >= looked + EPILOG_SECONDS:
            # what an ended job has left is nobody's fault
            epilog.look()
            looked = time.monotonic()
        if reserve:
            guard.look()
        peaks.look(epilog)
        if idle_jobs:
            idle_jobs.look(epilog.notes.running)
        has_begun = peaks.wait(LOOK_POLL_SECONDS if reserve else EPILOG_SECONDS)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]), sys.argv[5:])
