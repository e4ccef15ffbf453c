"""What a leaving pod asks and tells Flux about its rank: drain it, join no more, tell what runs on it.

The lead asks about all ranks, by the rank None.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from contextlib import suppress
from typing import Any

from state import jobs, nodes, parse_idset

STOP_REASON = "minicluster: the pod was told to stop"
RANK_POLL_SECONDS = 0.1
#: States of a broker that may get jobs, and of one that ends (flux-broker's state machine); before, it has not joined
ONLINE_STATES = ("quorum", "run")
ENDING_STATES = ("cleanup", "shutdown", "finalize", "goodbye", "unload-builtins", "exit")
#: State of a broker that can reach the lead and gets jobs soon
CONNECTED = "init"


def drain(handle: Any, rank: int) -> None:
    """Let no more jobs start on a rank. A rank that is drained already keeps its reason."""
    try:
        handle.rpc("resource.drain", {"targets": str(rank), "reason": STOP_REASON}, nodeid=0).get()
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise


def stop_joining(handle: Any, rank: int | None, seconds: float) -> bool:
    """Tell a broker that has not joined to stop, again and again: it misses a signal between two states.

    Return whether it has joined. Raises OSError when it can't be asked.
    """
    broker = int(handle.attr_get("broker.pid"))
    end = time.monotonic() + seconds
    state = handle.rpc("state-machine.get").get()["state"]
    with suppress(OSError):  # it has ended
        if rank is not None and state == CONNECTED:
            # it may get jobs before a signal ends it
            drain(handle, rank)
        while state not in ONLINE_STATES + ENDING_STATES and time.monotonic() < end:
            os.kill(broker, signal.SIGTERM)
            time.sleep(RANK_POLL_SECONDS)
            state = handle.rpc("state-machine.get").get()["state"]
    return state in ONLINE_STATES


def running_jobs(handle: Any, rank: int | None) -> list[int]:
    """Return the jobs that run on a rank, or (None) on any."""
    listed = jobs(handle, "running", ["ranks"])
    return [job["id"] for job in listed if rank is None or rank in parse_idset(job.get("ranks", ""))]


def is_idle(handle: Any, rank: int | None) -> bool:
    """Return whether nothing of a rank is allocated, or (None) whether no job runs.

    The lead undrains the rank of a pod that is gone, which may come when the next pod of that rank leaves already: then
    this drains it again.
    """
    if rank is None:
        return not running_jobs(handle, None)
    by_state = nodes(handle)
    if rank in by_state.drained:
        return rank not in by_state.used
    drain(handle, rank)
    return False
