"""Puts right what a kill of the lead leaves behind in its scheduler, where the queue is kept.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import subprocess
import time
from typing import Any

import flux.kvs
from flux.job import JobID, cancel
from flux.resource import resource_list
from state import cores, jobs, modules

#: What Flux says when its scheduler gave up, and for how many seconds after the start that is looked at
OFFLINE = "Scheduler is offline"
LOOK = 15.0
NOTE = "minicluster: the lead was killed while Flux gave this job its nodes: submit it again"
#: The modules of the schedulers, in the order in which they can be removed
SCHEDULERS = ("sched-simple", "sched-fluxion-qmanager", "sched-fluxion-feasibility", "sched-fluxion-resource")


def gave_up(handle: Any) -> bool:
    """Say whether the scheduler is there and yet has stopped."""
    try:
        status = handle.rpc("job-manager.queue-status", {}, nodeid=0).get()
    except OSError:  # named queues: there is no one status
        return False
    return OFFLINE in str(status.get("stop_reason", ""))


def cancel_half_started(handle: Any) -> None:
    """Cancel the jobs that have resources in the KVS and no word of it.

    Flux writes the two one after the other; a kill between them leaves a job that Flux 0.88 refuses to schedule
    ("already allocated"), and with it all others.
    """
    for job in jobs(handle, "sched", []):
        if flux.kvs.exists(handle, f"{JobID(job['id']).kvs}.R"):
            cancel(handle, job["id"], NOTE)


def stale(handle: Any) -> set[tuple[int, int]]:
    """Return the cores, as (rank, core), that Fluxion holds and no job has; none where another scheduler runs.

    The jobs that ran when the lead was killed are failed while the scheduler starts, which then misses that they are
    over (flux-core issue 6121).
    """
    asked = {"criteria": "sched-now=allocated", "format": "rv1_nosched"}
    try:
        held = cores(handle.rpc("sched-fluxion-resource.find", asked).get()["R"])
    except OSError:
        return set()
    return held - cores(resource_list(handle).get().allocated.encode())


def restart_scheduler(handle: Any) -> None:
    """Have the scheduler ask anew what is allocated and what waits."""
    # all of Fluxion: its qmanager alone crashes the broker when there are jobs
    loaded = [module for module in SCHEDULERS if module in modules(handle)]
    for verb, names in (("remove", loaded), ("load", loaded[::-1])):
        for name in names:
            subprocess.run(["flux", "module", verb, name], capture_output=True, check=False)


def recover(handle: Any) -> None:
    """Look for a while, and put right what is found."""
    end = time.monotonic() + LOOK
    before: set[tuple[int, int]] = set()
    while time.monotonic() < end:
        lost = stale(handle)
        if gave_up(handle):
            cancel_half_started(handle)
            restart_scheduler(handle)
        elif lost & before:  # twice: what is being freed right now is not stale
            restart_scheduler(handle)
        before = lost
        time.sleep(1)
