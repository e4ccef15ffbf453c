"""How old the lead's queue is, and whether all of it is listed. A new lead without its predecessor's state begins one.

Programs of newer clients bring it along. Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
import math
import time
from contextlib import suppress
from typing import Any

import flux.kvs
from flux.job.list import job_list_id

#: Flux's log of its starts, which is kept with the queue (flux-startlog(1))
STARTS_KEY = "admin.eventlog"
#: Looks at job-ingest that must find nothing in its hands, and seconds between two. A job that it has goes through five
#: hands: frobnicator, validator, a batch of 0.01 s, the KVS, the job manager
INGEST_TIMES, INGEST_SECONDS = 5, 0.05
#: Seconds until it has no more of what it had at first, once it has dealt with as many jobs: each of its workers has a
#: queue of its own, and others may be faster
SLOWEST_SECONDS = 10.0


def catch_up(handle: Any) -> None:
    """Wait until each job that Flux was given before is listed, also those of killed programs. Raises OSError.

    Flux goes on with a submission whose program is gone, and validates it for as long as that takes. Others may submit
    all the while, so this also ends when Flux has dealt with as many jobs as it had, and SLOWEST_SECONDS later.
    """
    given: list[int] = []
    looks, end = 0, math.inf
    while looks < INGEST_TIMES and time.monotonic() < end:
        with suppress(OSError):  # a full volume
            # its answer comes after those to earlier commits
            handle.rpc("kvs.commit", {"namespace": "primary", "flags": 0, "ops": []}, 0).get()
        crews = handle.rpc("job-ingest.stats-get", {}, 0).get()["pipeline"].values()
        looks += not any(crew["backlog"] for crew in crews)
        given = given or [crew["requests"] for crew in crews]
        if all(crew["requests"] - crew["backlog"] >= count for crew, count in zip(crews, given)):
            end = min(end, time.monotonic() + SLOWEST_SECONDS)
        time.sleep(INGEST_SECONDS)
    # job-list may lag behind: once it knows the newest job, it knows those before
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
