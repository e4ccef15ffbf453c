"""How a job of the SDK ended, and what it raises then."""

from __future__ import annotations

import base64
import pickle
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from minicluster.cluster import states
from minicluster.console import lines
from minicluster.sdk.exceptions import JobError


@dataclass(frozen=True)
class FinishedJob:
    """A job that is over."""

    id: str  #: Flux's, as `flux jobs` shows it
    exit_code: int  #: 128 plus the signal's number if a signal killed it; 1 if it never ran
    pieces: tuple[tuple[str, str], ...] = ()  #: its output in order: ``stdout`` or ``stderr``, and a text
    reason: str = ""  #: how it failed, such as "was cancelled: by me"; "" for one that did not
    #: What it used, by ``nodes`` and in ``total``: ``cpu_seconds``, ``cores``, and in bytes ``memory_peak``,
    #: ``memory_limit``, ``read`` and ``written``; None for what is unknown
    usage: Mapping[str, Any] | None = None
    nodes: str = ""  #: a hostlist, "" if it never had any
    submitted: float | None = None  #: seconds since 1970; None for what is unknown
    started: float | None = None  #: the same
    ended: float | None = None  #: the same
    returned: str = field(default="", repr=False)  #: what a function returned, for `value`

    @property
    def output(self) -> str:
        """Both streams, in the order in which Flux got them."""
        return "".join(text for _, text in self.pieces)

    @property
    def stdout(self) -> str:
        """Its standard output, of all tasks together."""
        return "".join(text for stream, text in self.pieces if stream == "stdout")

    @property
    def stderr(self) -> str:
        """Its standard error, with the messages of Flux's shell."""
        return "".join(text for stream, text in self.pieces if stream == "stderr")

    @property
    def runtime(self) -> float | None:
        """The seconds that it ran; None if that is unknown."""
        return self.ended - self.started if self.ended and self.started else None

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from minicluster.sdk.pictured import as_html  # noqa: PLC0415 - it imports this module

        seconds = None if self.runtime is None else round(self.runtime, 1)
        rows = {"job": self.id, "exit code": self.exit_code, "why": self.reason, "nodes": self.nodes}
        return as_html({**rows, "started": _when(self.started), "ended": _when(self.ended), "seconds": seconds})

    def value(self) -> Any:
        """Return what the job's function returned, or raise what it raised: of ``cluster.job(ID)``, for example."""
        return value_of(self)


class JobFailed(JobError):  # noqa: N818 - what happened
    """A job failed, was cancelled by someone else, or ran out of time."""

    def __init__(self, job: FinishedJob) -> None:
        last = next((line.strip() for line in reversed(lines.split(job.stderr)) if line.strip()), "")
        # the last line may be the same reason, from Flux's shell
        is_new = job.reason.rpartition(": ")[2] not in last
        super().__init__(f"job {job.id} {job.reason}" + (f": {last}" if last and is_new else ""))
        self.job = job

    def __reduce__(self) -> tuple[type[JobFailed], tuple[FinishedJob], dict[str, Any]]:
        return type(self), (self.job,), self.__dict__

    @property
    def exit_code(self) -> int:
        """The job's exit code; 128 plus the signal's number if a signal killed it; 1 if it never ran."""
        return self.job.exit_code

    @property
    def output(self) -> str:
        """What the job printed."""
        return self.job.output

    @property
    def usage(self) -> Mapping[str, Any] | None:
        """What the job used, as of a `FinishedJob`."""
        return self.job.usage


class RemoteTraceback(Exception):  # noqa: N818 - a cause
    """The cause of what a function raised: the traceback of the node."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def value_of(job: FinishedJob) -> Any:
    """Return what the function of a job returned. Raises what it raised; JobFailed, JobError if nothing came."""
    if not job.returned and job.reason:
        raise JobFailed(job)
    if not job.returned:
        why = "it has another command, it ended Python by itself, or Flux has forgotten it"
        raise JobError(f"job {job.id} has no result of a function: {why}")
    try:
        value, trace = pickle.loads(zlib.decompress(base64.b64decode(job.returned)))  # noqa: S301 - our own job's
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        raise JobError(f"job {job.id}: what its function returned can't be read here: {text}") from None
    if trace:
        raise (value or JobFailed(job)) from RemoteTraceback(trace)
    if job.reason:
        raise JobFailed(job)
    return value


def _when(seconds: float | None) -> str:
    return "" if seconds is None else f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M:%S}"


def code_of(status: int) -> int:
    """Return the exit code of a wait status: 128 plus its number where a signal ended it."""
    return 128 + (status & 0x7F) if status & 0x7F else status >> 8


def finished(name: str, end: Mapping[str, Any]) -> FinishedJob:
    """Return how a job ended, from its wait status and its exception."""
    exception = end["exception"]
    code = None if end["status"] is None else code_of(end["status"])
    if exception:
        reason = states.of_job_end(code, exception["type"], exception["note"])
        code = code or 1
    elif code is None:
        code, reason = 1, "never ran"
    else:
        reason = states.of_job_end(code, "", "") if code else ""
    pieces = tuple((stream, text) for stream, text in end["output"])
    submitted, started, ended, *_ = (at or None for at in end.get("times", (None, None, None)))
    returned = end.get("returned") or ""
    usage, nodes = end["usage"], end.get("nodes", "")
    return FinishedJob(name, code, pieces, reason, usage, nodes, submitted, started, ended, returned)


@dataclass(frozen=True)
class Result:
    """What a command printed, and its exit code."""

    exit_code: int  #: 128 plus the signal's number if a signal ended the command
    stdout: str  #: of `MiniCluster.run` the log of the lead
    stderr: str  #: of `MiniCluster.run` always empty
