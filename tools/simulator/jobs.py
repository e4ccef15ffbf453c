"""The jobs of the model's queue."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: States of jobs, by the filter of a query
FILTERS = {
    **{name: {name} for name in ("depend", "priority", "sched", "run")},
    "pending": {"depend", "priority", "sched"},
    "running": {"run", "cleanup"},
    "active": {"depend", "priority", "sched", "run", "cleanup"},
    **{name: {name} for name in ("completed", "failed", "canceled", "timeout")},
    "inactive": {"completed", "failed", "canceled", "timeout"},
}

#: Exit code of work that fails
FAILED_CODE = 3


@dataclass(frozen=True)
class Load:
    """A job that somebody submits."""

    nodes: int = 1
    cores: int = 1
    seconds: float = 5.0
    own: Mapping[str, Any] = field(default_factory=dict)  #: its attributes of ours
    fails: int = 0  #: how many times it ends with an exit code, before it succeeds
    group: str = ""
    urgency: int = 16

    def jobspec(self) -> dict[str, Any]:
        """Return its jobspec."""
        slot = {"type": "slot", "count": 1, "with": [{"type": "core", "count": self.cores}]}
        system = {"duration": 0, **({"constraints": {"properties": [self.group]}} if self.group else {})}
        attributes = {"system": system, "user": {"minicluster": dict(self.own)}}
        resources = [{"type": "node", "count": self.nodes, "with": [slot]}]
        return {"resources": resources, "tasks": [], "attributes": attributes}


@dataclass
class Job:
    """A job of the queue."""

    number: int
    jobspec: dict[str, Any]
    urgency: int
    lineage: int  #: the job that was submitted first; the others are its copies
    work: float  #: seconds
    taken: float  #: when it was submitted
    state: str = "depend"
    ranks: list[int] = field(default_factory=list)
    after: int | None = None  #: runs when that one has failed
    begins: float = 0.0  #: not before, in seconds of the clock
    runs: int = 0  #: counts its ends, so that an event for an earlier one is none
    result: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)  #: its log (RFC 21)
    listed: dict[str, Any] = field(default_factory=dict)  #: what job-list knows of it
    listed_at: float = 0.0  #: when it knows the nodes of the job


class JobID(int):
    """The id of a job, with its text forms."""

    def __new__(cls, number: int | str) -> "JobID":
        """Take a number, or a text as people see it."""
        return super().__new__(cls, number[1:] if isinstance(number, str) else number)

    @property
    def f58plain(self) -> str:
        """The id as people see it."""
        return f"f{int(self)}"

    f58 = f58plain


def exception(kind: str, note: str) -> dict[str, Any]:
    """Return what job-list tells of a job that an exception ends."""
    return {"exception_occurred": True, "exception_severity": 0, "exception_type": kind, "exception_note": note}


@dataclass
class Fates:
    """What became of the jobs that people have submitted: each with its copies is a lineage, by the first one's id."""

    successes: dict[int, int] = field(default_factory=dict)
    failing: dict[int, int] = field(default_factory=dict)  #: how many times its work still ends with an exit code
    exits: dict[int, int] = field(default_factory=dict)  #: how many times it has
    tries: dict[int, int] = field(default_factory=dict)  #: how many it is to have
    given_up: set[int] = field(default_factory=set)  #: lost too many nodes
    copies: dict[int, int] = field(default_factory=dict)  #: of jobs
    keys: dict[str, int] = field(default_factory=dict)  #: the jobs of clients of the SDK, by their keys
    stopped: int = 0  #: jobs that others were to pass
    least_run: float = 0.0  #: for how many seconds these must have run
    retried: int = 0  #: jobs that were tried again

    def submit(self, job: Job, before: Job | None, fails: int) -> None:
        """Note a new job; ``before``: it is a copy of that one."""
        own = own_attributes(job.jobspec)
        if not before:
            key = job.jobspec["attributes"]["user"].get("minicluster-sdk", job.number)
            other = self.keys.setdefault(str(key), job.number)
            assert other == job.number, f"jobs {other} and {job.number} are the same one of a client"
            self.failing[job.number], self.tries[job.number] = fails, int(own.get("retries", 0)) + 1
            return
        other = self.copies.setdefault(before.number, job.number)
        assert other == job.number, f"job {before.number} has two copies, {other} and {job.number}"
        is_try = own.get("retried", 0) > own_attributes(before.jobspec).get("retried", 0)
        self.retried += is_try
        assert own.get("retried", 0) < self.tries[job.lineage], f"job {job.number} is a try too many"

    def stop(self, job: Job, ran: float) -> None:
        """Note that a job is stopped for another one."""
        assert own_attributes(job.jobspec).get("preemptible"), f"job {job.number} is stopped, and is not marked"
        assert ran >= self.least_run, f"job {job.number} is stopped after {ran:.1f} s"
        self.stopped += 1

    def end(self, job: Job) -> int:
        """Note that the work of a job has ended, and return its exit code."""
        if self.failing.get(job.lineage):
            self.failing[job.lineage] -= 1
            self.exits[job.lineage] = self.exits.get(job.lineage, 0) + 1
            return FAILED_CODE
        self.successes[job.lineage] = self.successes.get(job.lineage, 0) + 1
        return 0

    def is_known(self, job: int) -> bool:
        """Tell whether a job that was taken ended as it should."""
        failed = 0 < self.tries.get(job, 1) <= self.exits.get(job, 0)
        return bool(self.successes.get(job)) or failed or job in self.given_up


def own_attributes(jobspec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the attributes of ours."""
    own: Mapping[str, Any] = jobspec["attributes"]["user"].get("minicluster", {})
    return own


def wanted(jobspec: Mapping[str, Any]) -> tuple[int, int]:
    """Return the nodes that a job of ours asks for, and the cores on each."""
    [node] = jobspec["resources"]
    return int(node["count"]), int(node["with"][0]["with"][0]["count"])
