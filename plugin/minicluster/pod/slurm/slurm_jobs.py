"""A job of Flux in Slurm's words: its id, state, reason and times.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import re
from typing import Any, Mapping, NamedTuple, Sequence

from job_record import usage

#: What is asked of Flux of each job
LISTED = [
    "name", "userid", "urgency", "priority", "state", "result", "t_submit", "t_depend", "t_run", "t_cleanup",
    "t_inactive", "duration", "expiration", "nnodes", "ntasks", "ncores", "nodelist", "ranks", "waitstatus", "queue",
    "cwd", "annotations", "dependencies", "exception_occurred", "exception_severity", "exception_type",
    "exception_note",
]  # fmt: skip
#: Slurm's states with their short forms
SLURM_STATES = {
    "PENDING": "PD", "RUNNING": "R", "SUSPENDED": "S", "COMPLETING": "CG", "COMPLETED": "CD", "CANCELLED": "CA",
    "FAILED": "F", "TIMEOUT": "TO", "NODE_FAIL": "NF", "PREEMPTED": "PR", "BOOT_FAIL": "BF", "DEADLINE": "DL",
    "OUT_OF_MEMORY": "OOM", "CONFIGURING": "CF", "REQUEUED": "RQ", "SPECIAL_EXIT": "SE", "STOPPED": "ST",
}  # fmt: skip
#: States of jobs that have not ended
ACTIVE = ("PENDING", "RUNNING", "COMPLETING")
#: Numbers of Flux (flux_job_state_t, flux_job_result_t)
_NUMBERS = {"depend": 2, "sched": 8, "run": 16}
_RESULTS = {1: "COMPLETED", 2: "FAILED", 4: "CANCELLED", 8: "TIMEOUT"}
#: Exceptions that Slurm has states for
_EXCEPTIONS = {"memory": "OUT_OF_MEMORY", "node-failure": "NODE_FAIL", "lost": "NODE_FAIL", "dependency": "CANCELLED"}


class Job(NamedTuple):
    """A job."""

    flux: int  #: its id in Flux
    number: int  #: its id as Slurm's commands show it: that of the job that it continues
    array: tuple[int, int] | None  #: id of the array, and index
    name: str
    user: str
    state: str
    reason: str
    submitted: float
    started: float
    expected: float  #: when the scheduler will start one that waits, 0.0 if it does not know
    ended: float
    limit: float
    nodes: int
    hosts: str
    ranks: str
    cpus: int
    tasks: int
    partition: str
    priority: int
    code: int
    directory: str
    comment: str
    dependency: str
    usage: Mapping[str, Any] | None = None  #: what it used, once it has ended (job_record.py)
    path: str = ""  #: of one inside of another, its id; the numbers are those of the outermost

    @property
    def id(self) -> str:
        """The id as text: A_a for a task of an array, A/B for one inside of another."""
        return self.path or (f"{self.array[0]}_{self.array[1]}" if self.array else str(self.number))

    @property
    def start(self) -> float:
        """When it started, or will start; 0.0 if nobody knows."""
        return self.started or self.expected

    @property
    def short(self) -> str:
        """The state's short form."""
        return SLURM_STATES[self.state]

    def elapsed(self, now: float) -> float:
        """Return for how long it runs, or ran, in seconds."""
        return (self.ended or now) - self.started if self.started else 0.0


def job_of(entry: Mapping[str, Any], user: str, partition: str) -> Job:
    """Return a job as Flux lists it; the partition is that of a job without one."""
    annotations = entry.get("annotations") or {}
    own = (annotations.get("user") or {}).get("slurm") or {}
    state = _state(entry)
    array, index = own.get("array"), own.get("index")
    started = entry.get("t_run") or 0.0
    status = entry.get("waitstatus") or 0
    return Job(
        flux=entry["id"],
        number=int(own.get("id") or entry["id"]),
        array=None if index is None else (array or entry["id"], index),
        name=entry.get("name") or "",
        user=user,
        state=state,
        reason=_reason(entry, state),
        submitted=entry.get("t_submit") or 0.0,
        started=started,
        expected=(annotations.get("sched") or {}).get("t_estimate") or 0.0,
        ended=entry.get("t_inactive") or entry.get("t_cleanup") or 0.0,
        limit=entry.get("duration") or 0.0,
        nodes=entry.get("nnodes") or 1,
        hosts=entry.get("nodelist") or "",
        ranks=entry.get("ranks") or "",
        cpus=entry.get("ncores") or entry.get("ntasks") or 1,
        tasks=own.get("tasks") or entry.get("ntasks") or 1,
        partition=own.get("partition") or entry.get("queue") or partition,
        priority=entry.get("priority") or 0,
        code=status >> 8 if status & 127 == 0 else 128 + (status & 127),
        directory=entry.get("cwd") or "",
        comment=own.get("comment") or "",
        dependency=",".join(map(str, entry.get("dependencies") or [])),
        usage=entry["usage"] if "usage" in entry else usage(entry),
    )


def _state(entry: Mapping[str, Any]) -> str:
    if entry["state"] < _NUMBERS["run"]:
        return "PENDING"
    if entry["state"] < 64:
        return "RUNNING" if entry["state"] == _NUMBERS["run"] else "COMPLETING"
    result = _RESULTS.get(entry.get("result") or 0, "FAILED")
    kind = entry.get("exception_type") if entry.get("exception_occurred") else ""
    return _EXCEPTIONS.get(str(kind), result) if result == "FAILED" else result


def _reason(entry: Mapping[str, Any], state: str) -> str:
    if state != "PENDING":
        failed = {
            "TIMEOUT": "TimeLimit",
            "FAILED": "NonZeroExitCode",
            "OUT_OF_MEMORY": "OutOfMemory",
            "NODE_FAIL": "NodeDown",
        }
        return failed.get(state, "None")
    if entry["state"] == _NUMBERS["depend"]:
        waits = str(entry.get("dependencies") or "")
        return "BeginTime" if "begin-time" in waits else "Dependency"
    if not entry.get("urgency"):
        return "JobHeldUser"
    return "Resources" if entry["state"] == _NUMBERS["sched"] else "None"


def with_reasons(jobs: Sequence[Job]) -> list[Job]:
    """Return jobs with the reason Priority for those that wait behind another one."""
    first = max((job.priority for job in jobs if job.reason == "Resources"), default=0)
    at = min((job.flux for job in jobs if job.reason == "Resources" and job.priority == first), default=0)
    return [job._replace(reason="Priority") if job.reason == "Resources" and job.flux != at else job for job in jobs]


class JobChoice(NamedTuple):
    """An id as somebody gave it."""

    number: int
    indices: frozenset[int] | None  #: of an array's tasks; None for all

    def has(self, job: Job) -> bool:
        """Whether a job is meant."""
        if self.indices is not None:
            return job.array is not None and job.array[0] == self.number and job.array[1] in self.indices
        return self.number in (job.flux, job.number) or bool(job.array and job.array[0] == self.number)


def wanted_of(text: str, decode: Any) -> JobChoice:
    """Return what an id means: a number, Flux's own forms, A_a or A_[1-3]; a step's id is its job's. Raises ValueError.

    ``decode`` reads Flux's own forms, and raises ValueError.
    """
    match = re.fullmatch(r"(?:JobId=)?([^_.\[\]]+)(?:_\[?([\d,:%-]+)\]?)?(?:[.+].*)?", text.strip(), re.IGNORECASE)
    if not match:
        raise ValueError(text)
    number = int(match[1]) if match[1].isdigit() else decode(match[1])
    if match[2] is None:
        return JobChoice(number, None)
    indices = set()
    for part in match[2].partition("%")[0].split(","):
        first, _, last = part.partition("-")
        indices |= set(range(int(first), int(last or first) + 1))
    return JobChoice(number, frozenset(indices))
