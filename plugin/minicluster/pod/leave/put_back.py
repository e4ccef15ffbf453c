"""On the lead: makes the copies of jobs that run again, one of each, and answers the pods that leave (requeue.py).

It also brings local code to nodes that joined later.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterable, Mapping

import flux
from begun import catch_up
from flux.job import JobID
from requeue import SERVICE, TOPIC, continuations, resubmit, waiting_copies
from state import jobs

#: What asks for local code
UPLOAD_TOPIC = f"{SERVICE}.upload"


@dataclass
class Copies:
    """Makes one copy of each job, although three threads ask.

    A job may lose a node, or fail by its exit code, when its leaving pod has asked.
    """

    made: dict[int, int] = field(default_factory=dict)  #: by job
    turn: threading.Lock = field(default_factory=threading.Lock)
    begin: float = field(default_factory=time.time)
    earlier: set[str] = field(default_factory=set)  #: the jobs of which an earlier run of this program made one
    since: float = math.inf  #: of those copies that had not ended before this time

    def has(self, handle: Any, job: Mapping[str, Any], since: float) -> bool:
        """Say whether a job has a copy, even by an earlier run, that had not ended before a time. Raises OSError."""
        if job["id"] in self.made:
            return True
        if (job.get("t_run") or 0.0) >= self.begin:
            return False
        # only when it must be: it reads each job of the queue, which may be kept and long
        if since < self.since:
            self.earlier, self.since = continuations(handle, since), since
        return JobID(job["id"]).f58plain in self.earlier

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
    # copies that an earlier run of this program has asked for
    catch_up(own)
    kind = flux.constants.FLUX_MSGTYPE_REQUEST
    with handle.msg_watcher_create(answer, kind, TOPIC), handle.msg_watcher_create(bring, kind, UPLOAD_TOPIC):
        handle.reactor_run()


def bring(handle: Any, _watcher: object, request: Any, _args: object) -> None:
    """Begin to bring local code to a node that joined after it came (minicluster.lua)."""
    place, rank = str(request.payload["place"]), int(request.payload["rank"])
    home = Path(os.environ["MINICLUSTER_HOME"])
    problem = None
    if not re.fullmatch("(with-)?[0-9a-f]{20}", place) or not (home / "uploads" / place).is_dir():
        problem = "the lead does not have it"
    else:
        words = ["/bin/sh", str(home / "minicluster/late_upload.sh"), place, str(rank)]
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL)  # words
        threading.Thread(target=child.wait, daemon=True).start()
    handle.respond(request, {"problem": problem} if problem else {})
