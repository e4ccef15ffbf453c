"""How old the lead's queue is, and whether all of it is listed. A new lead without its predecessor's state begins one.

A module of remote.py and mine.py: runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any

import flux.kvs
from flux.job.list import job_list_id

#: Flux's log of its starts, which is kept with the queue (flux-startlog(1))
STARTS_KEY = "admin.eventlog"


def catch_up(handle: Any) -> None:
    """Wait until job-list, which may lag behind, knows the newest job: then it knows those before. Raises OSError."""
    newest = handle.rpc("job-manager.stats-get", {}, 0).get()["max_jobid"]
    with suppress(FileNotFoundError):  # there is none, or Flux has forgotten it
        job_list_id(handle, newest, ["state"]).get_job()


def is_younger(handle: Any, seconds: float) -> bool:
    """Return whether the queue is not yet so many seconds old: what came before is lost. Raises OSError."""
    try:
        started = flux.kvs.get(handle, STARTS_KEY)
    except FileNotFoundError:
        return False
    # a single event was parsed
    first = started if isinstance(started, dict) else json.loads(started.split("\n")[0])
    return time.time() - float(first["timestamp"]) < seconds
