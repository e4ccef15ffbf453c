"""What comes of a job of the SDK: what it prints while it runs, how it ended, and what it raises then."""

from __future__ import annotations

import base64
import pickle
import threading
import uuid
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from minicluster.cluster import states
from minicluster.console import lines
from minicluster.sdk.exceptions import ClosedError, JobError, JobLost, SdkError
from minicluster.sdk.jobs import as_html


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


#: A stream, and a text of it
Piece = tuple[str, str]
Stream = Literal["stdout", "stderr", "output"]
#: The streams of a job by the names that FinishedJob has, too
OUTPUT_STREAMS: Mapping[str, tuple[str, ...]] = {
    "stdout": ("stdout",),
    "stderr": ("stderr",),
    "output": ("stdout", "stderr"),
}


def cut(pieces: Iterable[Piece]) -> Iterator[str]:
    """Yield the lines of pieces, each as soon as it is whole, with its end."""
    cutters = {stream: lines.Cutter() for stream in OUTPUT_STREAMS["output"]}
    for stream, text in pieces:
        for line in cutters[stream].take(text.encode()):
            yield line.decode()
    for cutter in cutters.values():
        for line in cutter.end():
            yield line.decode()


class OutputGone(JobLost):
    """Flux does not have the output of a job."""


class OutputRequest:
    """A request for the output of a job; live_output.py sends no more at once than may be kept."""

    is_owed, fate = False, ""

    def __init__(self, name: str) -> None:
        self.key = uuid.uuid4().hex
        self._name, self._at = name, 0
        self._begin()

    def _begin(self) -> None:
        self._came = threading.Condition()
        self._pieces: deque[Piece] = deque()
        self._is_over, self._error = False, None  # type: bool, SdkError | None
        self.is_paused = False  #: whether there is more, which has to be asked for

    def message(self) -> dict[str, Any]:
        """Return the message: go on where the last text ended."""
        self.is_paused = False
        return {"key": self.key, "output": self._name, "at": self._at}

    def stop(self) -> list[dict[str, Any]]:
        """Return the message that ends it before its end."""
        return [] if self._is_over else [{"key": self.key, "output": ""}]

    def receive(self, reply: Mapping[str, Any]) -> list[dict[str, Any]] | None:
        """Read a reply."""
        with self._came:
            if "text" in reply:
                self._at = reply["to"]
                self._pieces.append(tuple(reply["text"]))
            elif "more" in reply:
                self.is_paused = True
            else:
                self._is_over = True
                if "over" not in reply:
                    self._error = OutputGone(reply.get("error", "it is gone"))
            self._came.notify_all()
        return None if self._is_over else []

    def take(self) -> list[Piece] | None:
        """Wait for new pieces; None at the end. Raises OutputGone, and what the session fails with."""
        with self._came:
            self._came.wait_for(lambda: self._pieces or self.is_paused or self._is_over)
            taken = [*self._pieces]
            self._pieces.clear()
            if not taken and self._error:
                raise self._error
        return taken if taken or not self._is_over else None

    def fail(self, error: SdkError) -> None:
        """Give the error after what has come."""
        with self._came:
            self._is_over, self._error = True, error
            self._came.notify_all()

    def leave(self) -> None:
        """Leave it to the parent, in a child."""
        self._begin()
        self.fail(ClosedError(f"the output of job {self._name} is read by the parent process"))
