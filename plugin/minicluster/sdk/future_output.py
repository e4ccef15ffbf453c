"""What a job prints, while it runs."""

import threading
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from minicluster.console import lines
from minicluster.sdk.exceptions import ClosedError, JobLost, SdkError

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
