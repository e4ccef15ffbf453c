"""What the events of a job's output have (RFC 24).

A module of remote.py and printed.py: runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import base64
from typing import Any, Mapping


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
