"""What the events of a job's output have (RFC 24), and how they are read.

A module of remote.py, printed.py and explain.py: runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import base64
import errno
import json
import re
from collections import deque
from typing import Any, Iterator, Mapping

#: Where Flux keeps the output (RFC 24)
OUTPUT_KEY = "guest.output"
#: Bytes of an output that a client of the SDK keeps, and gets at once
KEPT_BYTES = 16 << 20
#: The marks of instance.py, which are for the client that follows it
END_MARKS = re.compile(rb"\x1eminicluster-end(?: \d+)?\n")
Event = Mapping[str, Any]


def lookup(handle: Any, job: int, key: str) -> str:
    """Return what Flux has of a job. Raises FileNotFoundError if it has not, and OSError."""
    try:
        text: str = handle.rpc("job-info.lookup", {"id": job, "keys": [key], "flags": 0}).get()[key]
    except OSError as error:
        # it ran when its lead was killed: what it had of its own is gone, and the link to it is left
        if error.errno == errno.EOPNOTSUPP:
            raise FileNotFoundError(errno.ENOENT, key) from None
        raise
    return text


def events(text: str) -> Iterator[Event]:
    """Yield the events of a log (RFC 18)."""
    return (json.loads(line) for line in text.split("\n") if line)


def data_of(name: str, context: Mapping[str, Any]) -> list[tuple[str, bytes]]:
    """Return the stream and the bytes of an event, none where it has none."""
    if name == "log":
        return [("stderr", f"flux-shell: {context['message']}\n".encode())]
    if name != "data" or "data" not in context:
        return []
    text: str = context["data"]
    data = base64.b64decode(text) if context.get("encoding") == "base64" else text.encode()
    data = data * context.get("repeat", 1)
    return [(context["stream"], END_MARKS.sub(b"", data) if context["stream"] != "stdin" else data)]


class Tail:
    """The end of an output."""

    def __init__(self, most: int) -> None:
        """Keep so many bytes."""
        self.most, self.size, self.dropped = most, 0, 0
        self.kept = deque()  # type: deque[tuple[str, bytes]]

    def take(self, name: str, context: Mapping[str, Any]) -> None:
        """Take an event."""
        for stream, data in data_of(name, context):
            self.kept.append((stream, data))
            self.size += len(data)
        while self.size > self.most:
            stream, data = self.kept.popleft()
            rest = data[self.size - self.most :]
            self.size -= len(data) - len(rest)
            self.dropped += len(data) - len(rest)
            if rest:
                self.kept.appendleft((stream, rest))

    def pieces(self) -> list[tuple[str, str]]:
        """Return the streams and their texts."""
        return [(stream, data.decode(errors="replace")) for stream, data in self.kept]
