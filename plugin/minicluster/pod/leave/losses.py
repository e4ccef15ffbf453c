"""On the lead: puts jobs back into the queue: those of lost nodes, if they may run again, and those that want retries.

Programs of newer clients import BEGUN_KEY: its name stays.
A node is lost when its broker is killed: by the kernel for its memory, or with its pod or its Kubernetes node. Flux
then ends the job with an exception. A job may itself be the reason, so it is put back PUT_BACK_TIMES only.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import errno
import time
from typing import Any, Iterator, Mapping

import flux.kvs
from flux.job import JobID
from put_back import Copies
from requeue import lookup, losses_of, may_run_again
from state import exit_code, jobs

#: How the notes of Flux's exception begin; before flux-core 0.72 it was the second. The last two are those of jobs that
#: ran when their lead was killed
LOSS_NOTES = (
    *("node failure on ", "lost contact with job shell"),
    *("failed to create guest ns", "reattach to running job is not implemented"),
)
#: How often a job is put back after it lost a node
PUT_BACK_TIMES = 3
#: Seconds by which job-list may learn of an end later
LIST_SECONDS = 15.0
#: KVS key of the start of the last lead whose losses were looked at, in seconds since the epoch; for how many seconds
#: before its own start a lead looks back at most
BEGUN_KEY, BACK_SECONDS = "minicluster.losses", 3600.0
#: Errors of a broker that is gone or ends; others refuse a job
GONE_ERRORS = (
    *(errno.EHOSTUNREACH, errno.ECONNRESET, errno.ECONNREFUSED, errno.ENOTCONN, errno.EPIPE),
    *(errno.ETIMEDOUT, errno.ENOSYS),
)
LOSS_ATTRIBUTES = ["exception_type", "exception_note", "urgency", "t_run"]


def has_lost_node(job: Mapping[str, Any]) -> bool:
    """Say whether a job ended, or is about to end, because a node of it was lost."""
    return job.get("exception_type") == "exec" and str(job.get("exception_note", "")).startswith(LOSS_NOTES)


class Losses:
    """Puts each job back once."""

    def __init__(self, handle: Any, on_stop: str, copies: Copies) -> None:
        self.handle, self.on_stop, self.copies = handle, on_stop, copies
        # a lead that comes back fails the jobs of the one before at once, and this program starts later, or again; and
        # leads may be killed before they have looked, even the first ones
        self.begin = float(handle.attr_get("broker.starttime"))
        self.since = self.first = max(_last_begin(handle), self.begin - BACK_SECONDS)
        self.is_begun = False
        self.known: set[int] = set()  #: jobs that were looked at

    def repair(self) -> None:
        """Put back what was lost since the last look. Raises OSError."""
        begin = time.time()
        for job, runs in list(self._lost()):
            self.known.add(job["id"])
            self._put_back(job, runs)
        self.since = max(self.since, begin - LIST_SECONDS)
        if not self.is_begun:
            flux.kvs.put(self.handle, BEGUN_KEY, self.begin)
            flux.kvs.commit(self.handle)
            self.is_begun = True

    def _lost(self) -> Iterator[tuple[dict[str, Any], bool]]:
        """Yield each job that was lost, and whether it still ends."""
        for states in ("running", "failed"):
            for job in jobs(self.handle, states, LOSS_ATTRIBUTES, self.since):
                if has_lost_node(job) and job["id"] not in self.known:
                    yield job, states == "running"

    def _put_back(self, job: Mapping[str, Any], runs: bool) -> None:
        name = JobID(job["id"]).f58plain
        # its leaving pod has asked for the copy, or it was listed in both states
        if self.copies.has(self.handle, job, self.first):
            return
        try:
            jobspec = lookup(self.handle, job["id"])
            if not may_run_again(jobspec, self.on_stop):
                return
            if losses_of(jobspec) >= PUT_BACK_TIMES:
                print(
                    f"minicluster: job {name} lost a node again, {PUT_BACK_TIMES} times are the most: it ends",
                    flush=True,
                )
                return
            copy = self.copies.make(self.handle, job, {"losses": losses_of(jobspec) + 1}, runs)
        except (OSError, ValueError) as error:
            print(f"minicluster: job {name} lost a node and is not put back into the queue: {error}", flush=True)
            return
        print(f"minicluster: job {name} lost a node: it runs again as {JobID(copy).f58plain}", flush=True)


def _last_begin(handle: Any) -> float:
    """Return the start of the last lead whose losses were looked at, 0 if there was none."""
    try:
        return float(flux.kvs.get(handle, BEGUN_KEY))
    except (OSError, ValueError, TypeError):
        return 0.0


def retries_of(job: Mapping[str, Any], own: Mapping[str, Any]) -> int:
    """Return how often a job that has ended was tried again, with this time; 0 if it isn't tried again.

    ``own`` are its attributes: with `retries` it is, as often, if it failed by its exit code, and that is one of
    `retryOn`, by default any. Raises ValueError.
    """
    most, codes = own.get("retries"), own.get("retryOn")
    if not most or job.get("waitstatus") is None or (job.get("exception_occurred") and not job["exception_severity"]):
        return 0
    try:
        wanted = [int(code) for code in (codes if isinstance(codes, list) else str(codes).split(","))] if codes else []
        tried, most = int(own.get("retried") or 0), int(most)
    except (TypeError, ValueError):
        raise ValueError(
            f"retries is {most!r} and retryOn {codes!r}: must be like retries=3 and retryOn=29,137"
        ) from None
    code = exit_code(job["waitstatus"])
    return tried + 1 if code and code in (wanted or [code]) and tried < most else 0


class Retries:
    """Tries jobs again that failed by their exit code, if they want that."""

    def __init__(self, handle: Any, copies: Copies) -> None:
        """Take the copies that there are: a job whose pod had one made is not tried again, too."""
        self.handle, self.copies = handle, copies

    def look(self, job: Mapping[str, Any], user: Mapping[str, Any] | None) -> None:
        """Put a job that has ended back, by its user's attributes. Raises OSError when the broker is gone."""
        own = (user or {}).get("minicluster")
        if not (isinstance(own, dict) and own.get("retries")):
            return
        name = JobID(job["id"]).f58plain
        try:
            retried = retries_of(job, own)
            if not retried or self.copies.has(self.handle, job, job["t_inactive"]):
                return
            copy = JobID(self.copies.make(self.handle, job, {"retried": retried}, runs=False)).f58plain
        except (OSError, ValueError) as error:
            if getattr(error, "errno", None) in GONE_ERRORS:
                raise  # the job is not recorded then, so the next lead tries it again
            print(f"minicluster: job {name} is not tried again: {error}", flush=True)
            return
        code = exit_code(job["waitstatus"])
        print(f"minicluster: job {name} ended with {code}: try {retried} of {own['retries']} is {copy}", flush=True)
