"""A stand-in for the lead that a client of the SDK talks to."""

import json
import queue
import select
import socket
import threading
from typing import Any

from minicluster.errors import AwayError


class StandIn:
    """One connection to the lead; the test reads what the client wrote, and answers."""

    def __init__(self) -> None:
        self.exit_code: int | None = None
        self.stderr = b""
        self.written: queue.Queue[Any] = queue.Queue()
        self.counts: list[int] = []  #: messages of each write
        self.is_closed = threading.Event()
        self._near, self._far = socket.socketpair()
        self._rest = b""

    # what the client uses

    def wait(self, wake: socket.socket | None, seconds: float | None) -> bool:
        return bool(select.select([self._near, *([wake] if wake else [])], [], [], seconds)[0])

    def read(self) -> bytes | None:
        data = self._near.recv(1 << 16)
        if data:
            return data
        if self.exit_code is None:
            raise AwayError("the connection to the pod broke")
        return None

    def write(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        # the first one names the client
        messages = [message for message in map(json.loads, lines) if "client" not in message]
        self.counts.append(len(messages))
        for message in messages:
            self.written.put(message)

    def abort(self) -> None:
        self._far.close()

    def close(self) -> None:
        self.is_closed.set()

    # what the test uses

    def begin(self) -> "StandIn":
        """Take the program, and be ready."""
        *_, (name, text) = self.next()
        assert name == "__main__"
        assert "def main()" in text
        self.say(ready="0.88.0")
        return self

    def next(self) -> Any:
        """Return the next message of the client."""
        return self.written.get(timeout=10)

    def say(self, **reply: Any) -> None:
        """Send a reply."""
        self.raw(json.dumps(reply).encode() + b"\n")

    def raw(self, data: bytes) -> None:
        """Send bytes."""
        self._far.sendall(data)

    def end(self, job: str, status: int | None = 0, exception: Any = None, output: Any = (), usage: Any = None) -> None:
        """Send the end of a job."""
        self.say(key=job, end={"status": status, "exception": exception, "output": list(output), "usage": usage})

    def break_off(self, exit_code: int | None = None, stderr: bytes = b"") -> None:
        """End the connection, or with an exit code the program."""
        self.exit_code, self.stderr = exit_code, stderr
        self._far.close()

    def drop(self) -> None:
        """Close all."""
        self._near.close()
        self._far.close()


class Leads:
    """The leads that a session connects to, one after the other."""

    def __init__(self) -> None:
        self.asked = 0
        self._all: list[StandIn] = []
        self._waiting: queue.Queue[StandIn | Exception] = queue.Queue()

    def connect(self, _stop: threading.Event, _note: object) -> StandIn:
        """Connect as `MiniCluster` does."""
        self.asked += 1
        lead = self._waiting.get(timeout=10)
        if isinstance(lead, Exception):
            raise lead
        return lead

    def come(self, error: Exception | None = None) -> StandIn:
        """Let a lead be there, or an error in its place."""
        lead = StandIn()
        self._all.append(lead)
        self._waiting.put(error or lead)
        return lead

    def drop(self) -> None:
        """Close all."""
        for lead in self._all:
            lead.drop()
