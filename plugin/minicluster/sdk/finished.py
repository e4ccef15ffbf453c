"""How a job of the SDK ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FinishedJob:
    """A job that is over."""

    id: str  #: Flux's, as `flux jobs` shows it
    exit_code: int  #: 128 plus the signal's number if a signal killed it; 1 if it never ran
    pieces: tuple[tuple[str, str], ...] = ()  #: its output in order: ``stdout`` or ``stderr``, and a text
    reason: str = ""  #: why it failed, "" for one that did not

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


def finished(name: str, end: Mapping[str, Any]) -> FinishedJob:
    """Return how a job ended, from its wait status and its exception."""
    status, exception = end["status"], end["exception"]
    code, reason = 1, "it never ran"
    if status is not None:
        code = 128 + (status & 0x7F) if status & 0x7F else status >> 8
        reason = f"exit code {code}" if code else ""
    if exception:
        code, reason = code or 1, ": ".join(filter(None, [exception["type"], exception["note"]]))
    return FinishedJob(name, code, tuple((stream, text) for stream, text in end["output"]), reason)
