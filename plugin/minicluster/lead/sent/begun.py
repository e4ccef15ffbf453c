"""How old the lead's queue is: a new lead without its predecessor's state begins another one.

A module of remote.py and mine.py: runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import time
from typing import Any

import flux.kvs

#: Flux's log of its starts, which is kept with the queue (flux-startlog(1))
STARTS_KEY = "admin.eventlog"


def is_younger(handle: Any, seconds: float) -> bool:
    """Return whether the queue is not yet so many seconds old: what came before is lost. Raises OSError."""
    try:
        started = flux.kvs.get(handle, STARTS_KEY)
    except FileNotFoundError:
        return False
    # a single event was parsed
    first = started if isinstance(started, dict) else json.loads(started.split("\n")[0])
    return time.time() - float(first["timestamp"]) < seconds
