"""What the events of a job's output have (RFC 24), and how they are read.

A module of remote.py, printed.py and explain.py: runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import base64
import json
from typing import Any, Iterator, Mapping

#: Where Flux keeps the output (RFC 24)
OUTPUT_KEY = "guest.output"
Event = Mapping[str, Any]


def lookup(handle: Any, job: int, key: str) -> str:
    """Return what Flux has of a job. Raises FileNotFoundError if it has not."""
    found: str = handle.rpc("job-info.lookup", {"id": job, "keys": [key], "flags": 0}).get()[key]
    return found


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
    return [(context["stream"], data * context.get("repeat", 1))]


def text_of(event: Any) -> list[tuple[str, str]]:
    """Return the stream and the text of an event, none where it has none."""
    return [(stream, data.decode(errors="replace")) for stream, data in data_of(event.name, event.context)]
