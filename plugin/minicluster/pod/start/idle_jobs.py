"""Jobs that hold their cores and do nothing (flux.idleJobs): the guard of a job's first node warns of one, or ends it.

The guard of each other node notes in a memo of the job that it was idle there, too. What is unknown counts as busy: a
job with GPUs, whose use nobody knows here, and one that some of its processes have left.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
import time
from collections import deque
from contextlib import suppress
from typing import Mapping, NamedTuple

from job_notes import Run
from node_jobs import children, cpu_seconds, descendants, stats
from node_state import FluxNode, f58, say

#: How often a job is looked at in the time for which it may be idle
IDLE_TIMES = 10
#: The type of the exception, and the key of the reason in the memo
IDLE_TYPE, WHY_KEY = "idle", "why"
#: Of exceptions (RFC 21): one ends the job, the other only tells of it
SEVERITIES = {"cancel": 0, "warn": 1}


class IdleLimits(NamedTuple):
    """When a job is idle, and what happens then."""

    below: float  #: the part of its cores that it keeps busy is less
    seconds: float  #: for so long
    action: str  #: warn or cancel


def limits_of(words: str) -> IdleLimits:
    """Return limits that are given as a text."""
    below, seconds, action = words.split()
    return IdleLimits(float(below), float(seconds), action)


class Sample(NamedTuple):
    """The CPU time of a job's processes, in seconds, and when that was."""

    time: float
    cpu: float


class IdleJobs:
    """Looks at what jobs do on this node."""

    def __init__(self, limits: IdleLimits, node: FluxNode) -> None:
        self.limits, self.node = limits, node
        self.samples: dict[int, deque[Sample]] = {}  #: by job
        self.told: set[int] = set()  #: jobs that are noted, or were dealt with
        self.next_look = 0.0

    def look(self, running: Mapping[int, Run]) -> None:
        """Look at the jobs of shells, if it is time."""
        now = time.monotonic()
        if now < self.next_look:
            return
        self.next_look = now + self.limits.seconds / IDLE_TIMES
        of = stats() if running else {}
        tree = children(of)
        shells: dict[int, list[int]] = {}
        for shell, run in running.items():
            shells.setdefault(run.job, []).append(shell)
        self.samples = {job: samples for job, samples in self.samples.items() if job in shells}
        self.told &= shells.keys()
        for job, pids in shells.items():
            self._see(job, Sample(now, cpu_seconds(of[pid] for pid in descendants(pids, tree) if pid in of)))

    def _see(self, job: int, sample: Sample) -> None:
        samples = self.samples.setdefault(job, deque(maxlen=IDLE_TIMES + 1))
        if samples and sample.cpu < samples[-1].cpu:
            samples.clear()
        samples.append(sample)
        used = (sample.cpu - samples[0].cpu) / max(1e-3, sample.time - samples[0].time)
        is_known = len(samples) == samples.maxlen
        # Flux is asked only about a job that would be idle with all cores of the machine
        if job in self.told or (is_known and used < self.limits.below * (os.cpu_count() or 1)):
            # while Flux does not answer a job is busy
            with suppress(OSError):
                self._judge(job, used if is_known else float("inf"))

    def _judge(self, job: int, used: float) -> None:
        """Act on the use of a job on this node, in cores. Raises OSError."""
        had, rank = self.node.allotted(job), self.node.rank()
        cores, gpus = had[rank]
        is_first = rank == min(had)
        if gpus or used >= self.limits.below * cores:
            if job in self.told:
                self.node.note_idle(job, WHY_KEY if is_first else rank, None)
            self.told.discard(job)
        elif job not in self.told:
            if not is_first:
                self.node.note_idle(job, rank, time.time())
            elif not had.keys() - {rank} <= self.node.idle_ranks(job):
                return
            else:
                self._act(job, sum(each for each, _ in had.values()))
            self.told.add(job)

    def _act(self, job: int, cores: int) -> None:
        seconds = self.limits.seconds
        lasted = f"{seconds / 60:g} min" if seconds >= 120 else f"{seconds:g} s"
        what = "its core" if cores == 1 else f"its {cores} cores"
        why = f"kept less than {self.limits.below:.3g} of {what} busy for {lasted} (flux.idleJobs)"
        say(f"job {f58(job)} {why}")
        self.node.end_job(job, why, IDLE_TYPE, SEVERITIES[self.limits.action])
        # Flux lists the exceptions of ended jobs alone
        self.node.note_idle(job, WHY_KEY, why)
