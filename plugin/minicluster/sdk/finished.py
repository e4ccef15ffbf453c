"""How a job of the SDK ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from minicluster.cluster import states


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
        from minicluster.sdk.functions import value_of  # noqa: PLC0415 - it imports this module

        return value_of(self)


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
