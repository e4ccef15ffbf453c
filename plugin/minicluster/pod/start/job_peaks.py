"""What the jobs of this node use: config/run/usage/now has it for programs of the lead (used_now.py).

The most memory and threads that a job has taken are in config/run/usage/JOB, beside the container's limit, 0 without
one: usage.lua tells Flux when the job ends. Each look is at the peaks that the kernel keeps for
processes, so that what comes between two looks counts, too, in jobs of one process. A job that has just begun is looked
at sooner.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
import os
import select
import time
from contextlib import suppress
from pathlib import Path
from typing import Mapping, NamedTuple

from epilog import Epilog
from job_gpus import JobGpus
from node_jobs import JOB_SHELL, PROC, children, cpu_seconds, descendants, read, stats, taken, threads

#: Seconds between a job's begin and the first look at it, and between two looks at most
FIRST_LOOK_SECONDS, PEAK_SECONDS = 0.05, 0.5
#: The part of its age after which a job is looked at again, while it is young
AGE_PART = 0.5
#: How many times as long as a look's CPU time the pause after it is at least: so 0.1 % of a core at most, and 2 % while
#: jobs begin
PEAK_FACTOR, YOUNG_FACTOR = 1000, 50
#: By which part a peak grows before that is noted
NOTED_PART = 0.01
#: A FIFO to which usage.lua writes
BEGUN_NAME = "begun"
#: What the jobs use now
NOW_NAME = "now"
#: What is told of GPUs, in the order of GpuUse
GPU_WORDS = ("gpu_memory_peak", "gpu_memory_limit", "gpus_busy")


class Process(NamedTuple):
    """Bytes of memory of a process (proc_pid_status(5)): at most so far, and now."""

    peak: int
    now: int


class Peaks:
    """Looks at the memory of jobs, and waits for the next look."""

    def __init__(self, folder: Path, limit: int) -> None:
        """Make the folder; ``limit`` is the container's, in bytes. Raises OSError."""
        self.folder, self.limit = folder, limit
        folder.mkdir(exist_ok=True)
        with suppress(FileExistsError):
            os.mkfifo(folder / BEGUN_NAME)
        # for both, it never comes to an end
        self.begun = os.open(folder / BEGUN_NAME, os.O_RDWR | os.O_NONBLOCK)
        self.peaks: dict[int, int] = {}  #: by job
        self.most_threads: dict[int, int] = {}
        self.gpus = JobGpus(folder)
        self.noted: dict[int, tuple[int, ...]] = {}
        self.sums: dict[int, int] = {}  #: what a job's processes took, each for itself, when shares were measured
        #: When the next look is due, and when it may be because a job has begun
        self.next_look = self.next_young = 0.0

    def look(self, epilog: Epilog) -> None:
        """Look at the jobs that run, if it is time."""
        running = epilog.notes.running
        for job in self.peaks.keys() - epilog.notes.jobs():
            self._forget(job)
        if not running or time.monotonic() < self.next_look:
            return
        begin, of = time.process_time(), stats()
        tree = children(of)
        pids_of: dict[int, list[int]] = {}
        shells_of: dict[int, list[int]] = {}
        for shell, run in running.items():
            shells_of.setdefault(run.job, []).append(shell)
            pids_of.setdefault(run.job, []).extend(descendants([shell], tree)[1:])
        shared, now = epilog.shared(pids_of)[0], {}
        for job, pids in pids_of.items():
            memory = self._see(job, pids, shared.get(job, 0), threads(of[pid] for pid in pids))
            cpu = cpu_seconds(of[pid] for pid in shells_of[job] + pids if pid in of)
            now[job] = self._told(job, memory, cpu)
        self.gpus.look(pids_of)
        # Flux tells the files of several nodes by their lines
        self._note(NOW_NAME, json.dumps({"time": time.time(), "jobs": now}) + "\n")
        self._pause(time.process_time() - begin, epilog.notes.age())

    def _pause(self, cost: float, age: float) -> None:
        """Set when the next look is, by what the last one has cost, and the age of the youngest job."""
        now, pause = time.monotonic(), min(PEAK_SECONDS, max(FIRST_LOOK_SECONDS, AGE_PART * age))
        self.next_young = now + YOUNG_FACTOR * cost
        self.next_look = now + max(pause, cost * (PEAK_FACTOR if pause == PEAK_SECONDS else YOUNG_FACTOR))

    def wait(self, seconds: float) -> bool:
        """Wait for so long, or until the next look or the begin of a job; say whether one has begun."""
        due = self.next_look - time.monotonic()
        if not select.select([self.begun], [], [], min(seconds, due) if due > 0 else seconds)[0]:
            return False
        # of several that begin together the first wakes
        time.sleep(FIRST_LOOK_SECONDS)
        os.read(self.begun, select.PIPE_BUF)
        self.next_look = min(self.next_look, self.next_young)
        return True

    def _see(self, job: int, pids: list[int], shared: int, threads_now: int) -> int:
        """Note the peaks of a job that have grown; return the memory that it takes now."""
        there = [process for process in map(memory_of_process, pids) if process]
        peak = max([self.peaks.get(job, 0), shared, *(process.peak for process in there)])
        together = sum(process.now for process in there) + shared
        # what processes share costs much to find: only when there is more of it
        if together > (1 + NOTED_PART) * max(peak, self.sums.get(job, 0)):
            self.sums[job] = together
            peak = max(peak, taken(pids, shared))
        self.peaks[job] = peak
        most = self.most_threads[job] = max(threads_now, self.most_threads.get(job, 0))
        gpus = self.gpus.most.get(job, ())
        rest = (most, *gpus)
        noted, *noted_rest = self.noted.get(job, (0,))
        if peak > (1 + NOTED_PART) * noted or [*rest] != noted_rest:
            self.noted[job] = peak, *rest
            self._note(str(job), " ".join(map(str, (peak, self.limit, *rest))) + "\n")
        return min(together, peak)

    def _told(self, job: int, memory: int, cpu: float) -> Mapping[str, float]:
        peaks = {"memory_peak": self.peaks[job], "memory_limit": self.limit, "threads": self.most_threads[job]}
        gpus = zip(GPU_WORDS, self.gpus.most.get(job, ()))
        return {"memory": memory, "cpu_seconds": cpu, **peaks, **dict(gpus)}

    def _note(self, name: str, text: str) -> None:
        """Write a file; on a full volume it stays unknown."""
        with suppress(OSError):
            new = self.folder / f"{name}.new"
            new.write_text(text, encoding="ascii")
            new.replace(self.folder / name)

    def _forget(self, job: int) -> None:
        self.gpus.forget(job)
        for of_job in (self.peaks, self.most_threads, self.noted, self.sums):
            of_job.pop(job, None)
        # a shell that was killed has left it
        with suppress(FileNotFoundError):
            (self.folder / str(job)).unlink()


def memory_of_process(pid: int) -> Process | None:
    """Return the memory of a process; None once it has ended, and for Flux's shell, which a task is at first."""
    try:
        text = read(f"{PROC}/{pid}/status").decode(errors="replace")
    except OSError:
        return None
    if text.startswith(f"Name:\t{JOB_SHELL}\n") or "VmHWM:" not in text:
        return None
    return Process(*(int(text.partition(key)[2].split(None, 1)[0]) << 10 for key in ("VmHWM:", "VmRSS:")))
