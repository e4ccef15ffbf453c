"""Takes away what a job leaves on its node when it has ended there: processes, and shared memory of its making.

What was there before the job, what another job may have made that still runs, and what a process uses stays. What
nothing tells of whose it is belongs to no job.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Iterable

import node_jobs
from job_notes import Notes, uptime
from node_jobs import Jobs, mark_of, marked, send_to_all, written
from node_state import by_name, say, size
from shared_memory import Piece, all_used_by, pieces, since_start, users

#: Seconds by which the clock of files may be late
FILE_CLOCK_SECONDS = 0.05
#: Seconds for which processes are killed, which may start others meanwhile; the pause between two looks
EPILOG_KILL_SECONDS, KILL_POLL_SECONDS = 2.0, 0.02
#: How many times as long as a look at all processes the pause after it is at least
USE_FACTOR = 100


class Epilog:
    """What the jobs of this node have made, and who they are."""

    def __init__(self, run: Path, is_own: bool) -> None:
        """With config/run; ``is_own``: whether /dev/shm is this container's alone."""
        self.notes, self.is_own = Notes(run / "jobs"), is_own
        #: Has the names of what no job has made: at the container's start (memory.sh), and later
        self.foreign_file = run / "shm"
        #: These names, for the first look; later the times tell
        self.foreign = _names(self.foreign_file)
        self.makers: dict[Piece, set[int]] = {}  #: jobs, one of which has made a piece; set() if none
        self.unsure: set[Piece] = set()  #: pieces that one of several jobs has made
        self.next_use = 0.0

    def look(self) -> None:
        """Take away what jobs have left that have ended since the last look. Raises OSError."""
        ended = self.notes.look()
        if ended:
            kill_processes(ended)
        if self.is_own:
            self._see()
            self._ascribe()
            self._clear()

    def _see(self) -> None:
        """Note who may have made the pieces that are new."""
        there = pieces()
        self.makers = {piece: jobs for piece, jobs in self.makers.items() if piece in there}
        new = there - self.makers.keys()
        if not new:
            return
        foreign, self.foreign, now = self.foreign, set(), uptime()
        for piece in new:
            try:
                first, last = (since_start(each, now) for each in piece.made())
            except OSError:
                continue
            is_known = os.fsencode(piece.name) in foreign
            self.makers[piece] = (
                set() if is_known else self.notes.had(first - FILE_CLOCK_SECONDS, last + FILE_CLOCK_SECONDS)
            )
            if piece.name and not self.makers[piece] and not is_known:
                with self.foreign_file.open("ab") as file:
                    file.write(os.fsencode(piece.name) + b"\0")
        self.unsure |= {piece for piece in new if len(self.makers.get(piece, ())) > 1}

    def _use(self) -> dict[str, set[int]] | None:
        """Return `users`; None if that can't be known, or was asked for just now."""
        begin = time.monotonic()
        if begin < self.next_use:
            return None
        used = users()
        self._pause(begin)
        return used

    def _pause(self, begin: float) -> None:
        """Look at all processes no more for some time, after a look that has begun then."""
        end = time.monotonic()
        self.next_use = end + USE_FACTOR * (end - begin)

    def _ascribe(self) -> None:
        """Find the one of several jobs that has made a new piece."""
        if self.unsure and time.monotonic() >= self.next_use:
            begin = time.monotonic()
            traces = Traces(node_jobs.jobs())
            for piece in self.unsure & self.makers.keys():
                self.makers[piece] = traces.makers(piece, self.makers[piece])
            self.unsure.clear()
            self._pause(begin)

    def _jobs(self, pids: Iterable[int]) -> set[int]:
        """Return the running jobs of processes."""
        return {job for job in map(mark_of, pids) if job is not None} & self.notes.jobs()

    def _clear(self) -> None:
        """Remove the pieces whose makers have all ended, unless a process uses them."""
        running = self.notes.jobs()
        left = [piece for piece, jobs in self.makers.items() if jobs and not jobs & running]
        used = self._use() if left else None
        if used is None:
            return
        freed: dict[frozenset[int], int] = {}
        for piece in left:
            pids = used.get(piece.key)
            if pids is not None:
                # from now on it is theirs, too
                self.makers[piece] |= self._jobs(pids)
                continue
            who, bytes_of = frozenset(self.makers[piece]), piece.size()
            try:
                piece.remove()
            except OSError as error:
                say(f"{by_name(who)} left {piece.name or 'a segment'} in shared memory, which can't be freed: {error}")
                self.makers[piece] = set()
                continue
            freed[who] = freed.get(who, 0) + bytes_of
        for who, number in freed.items():
            say(f"{by_name(who)} left {size(number)} of shared memory: it is freed")

    def shared(self, pids_of: Jobs) -> tuple[dict[int, int], int]:
        """Return the bytes of shared memory of each job, of whose processes it takes the ids, and those of no job."""
        of_jobs: dict[int, int] = {}
        rest, traces = 0, Traces(pids_of)
        for piece, jobs in self.makers.items():
            makers = traces.makers(piece, jobs)
            if len(makers) == 1 and makers & pids_of.keys():
                [job] = makers
                of_jobs[job] = of_jobs.get(job, 0) + piece.size()
            else:
                rest += piece.size()
        return of_jobs, rest


class Traces:
    """By what a job is known to have made a piece, of several that may have."""

    def __init__(self, of_jobs: Jobs) -> None:
        """With the processes of the jobs that run; each is looked at once, if at all."""
        self.pids_of = of_jobs
        self.used: dict[int, set[str]] = {}
        self.written: dict[int, int] = {}

    def makers(self, piece: Piece, jobs: set[int]) -> set[int]:
        """Return the one of some jobs that uses a piece, or else that has written enough for it, or all of them."""
        if len(jobs) < 2 or not jobs <= self.pids_of.keys():
            return jobs
        for job in jobs - self.used.keys():
            self.used[job], self.written[job] = all_used_by(self.pids_of[job]), written(self.pids_of[job])
        using = {job for job in jobs if piece.key in self.used[job]}
        able = using or {job for job in jobs if self.written[job] >= max(1, piece.size())}
        return able if len(able) == 1 else jobs


def _names(file: Path) -> set[bytes]:
    try:
        return {path.rpartition(b"/")[2] for path in file.read_bytes().split(b"\0") if path}
    except FileNotFoundError:
        return set()


def kill_processes(jobs: Iterable[int]) -> None:
    """Kill the processes that have the marks of jobs."""
    killed: dict[int, set[int]] = {}
    end = time.monotonic() + EPILOG_KILL_SECONDS
    while time.monotonic() < end and (processes := {pid: job for pid, job in marked().items() if job in jobs}):
        send_to_all(processes, signal.SIGKILL)
        for pid, job in processes.items():
            killed.setdefault(job, set()).add(pid)
        time.sleep(KILL_POLL_SECONDS)
    for job, pids in killed.items():
        what = "a process" if len(pids) == 1 else f"{len(pids)} processes"
        say(f"{by_name([job])} left {what}, which {'is' if len(pids) == 1 else 'are'} killed")
