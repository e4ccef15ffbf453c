"""On the lead: makes the copies of jobs that run again, one of each, and answers the pods that leave (requeue.py).

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping

import flux
from flux.job import JobID
from requeue import AGAIN_KEY, SERVICE, TOPIC, resubmit, waiting_copies
from state import jobs


@dataclass
class Copies:
    """Makes one copy of each job, although two threads ask: a job may lose a node when its leaving pod has asked."""

    made: dict[int, int] = field(default_factory=dict)  #: by job
    turn: threading.Lock = field(default_factory=threading.Lock)

    def make(self, handle: Any, job: Mapping[str, Any], marks: Mapping[str, int], runs: bool = True) -> int:
        """Return the copy of a job, with the marks of `requeue.copy_of`. Raises OSError."""
        with self.turn:
            if job["id"] not in self.made:
                self.made[job["id"]] = resubmit(handle, job, marks, runs)
            return self.made[job["id"]]


def make_copies(handle: Any, wanted: Iterable[int], all_copies: Copies) -> dict[str, dict[str, str]]:
    """Make the missing copies; return by job's name all copies, and the errors of the others. Raises OSError."""
    names = {JobID(job).f58plain for job in wanted}
    # before the running jobs are listed: a copy waits only as long as its job runs
    copies = {name: JobID(copy).f58plain for name, copy in waiting_copies(handle) if name in names}
    errors: dict[str, str] = {}

    def add(job: Mapping[str, Any], name: str) -> None:
        try:
            copies[name] = JobID(all_copies.make(handle, job, {})).f58plain
        except OSError as error:
            errors[name] = str(error)
            return
        # then it isn't tried again by its exit code, too
        memo = {AGAIN_KEY: copies[name]}
        with suppress(OSError):  # it has just ended
            handle.rpc("job-manager.memo", {"id": job["id"], "volatile": False, "memo": memo}).get()

    # only jobs that run: one that is already ending has its copy, or somebody else ends it
    for job in jobs(handle, "run", ["urgency"]):
        name = JobID(job["id"]).f58plain
        if name in names and name not in copies:
            add(job, name)
    assert names >= copies.keys() | errors.keys(), "a job has a copy that nobody asked for"
    return {"copies": copies, "errors": errors}


def serve(all_copies: Copies) -> None:
    """On rank 0, answer the pods that leave, until the broker ends. Raises OSError then."""
    handle, own = flux.Flux(), flux.Flux()

    def answer(handle: Any, _watcher: object, request: Any, _args: object) -> None:
        wanted = request.payload["jobs"]
        try:
            made = make_copies(own, wanted, all_copies)
        except OSError as error:
            made = {"copies": {}, "errors": {JobID(job).f58plain: str(error) for job in wanted}}
        handle.respond(request, made)

    handle.service_register(SERVICE).get()
    with handle.msg_watcher_create(answer, flux.constants.FLUX_MSGTYPE_REQUEST, TOPIC):
        handle.reactor_run()
