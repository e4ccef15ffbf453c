"""The jobs of a leaving pod that may run again: they are warned, and rank 0 is asked for their copies (requeue.py).

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import signal
from contextlib import suppress
from typing import Any

from flux.job import JobID
from flux.job import kill as send
from requeue import ask_for_copies, lookup, may_run_again, warning


class Requeue:
    """What a leaving pod does with its jobs that may run again."""

    def __init__(self, handle: Any, on_stop: str, lost: bool) -> None:
        """With the value of pod.onStop; ``lost``: the queue is lost with this pod, so no copy is made."""
        self.handle, self.on_stop, self.lost = handle, on_stop, lost
        #: By job: whether it may run again, and the signal and time of its warning
        self.known: dict[int, tuple[bool, tuple[int, float] | None]] = {}
        self.warned: set[int] = set()

    def says(self, job: int) -> tuple[bool, tuple[int, float] | None]:
        """Return what the attributes of a job say; a wrong one is logged, once. Raises OSError."""
        if job not in self.known:
            again, first = False, None
            try:
                jobspec = lookup(self.handle, job)
                again = may_run_again(jobspec, self.on_stop)
                first = warning(jobspec) if jobspec and again else None
            except ValueError as error:
                print(f"minicluster: job {JobID(job).f58plain}: {error}", flush=True)
            self.known[job] = again, first
        return self.known[job]

    def put_back(self, running: list[int]) -> dict[str, str]:
        """Return the copies, by name, of the jobs that may run again. Rank 0 makes them. Raises OSError."""
        wanted = [job for job in running if self.says(job)[0]]
        return ask_for_copies(self.handle, wanted) if wanted and not self.lost else {}

    def warn(self, running: list[int], left: float) -> None:
        """Send the signals that are due ``left`` seconds before the end, each once. Raises OSError."""
        due = {}
        for job in running:
            first = self.says(job)[1]
            if first and left <= first[1] and job not in self.warned:
                due[job] = signal.Signals(first[0])
        self.put_back(list(due))
        for job, signum in due.items():
            print(f"minicluster: job {JobID(job).f58plain} gets {signum.name}: the pod was told to stop", flush=True)
            self.warned.add(job)
            with suppress(OSError):  # it has just ended
                send(self.handle, job, signum)
