"""Repairs what a kill of the lead leaves behind in the scheduler, where the queue was kept.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import subprocess
import time
from typing import Any

import flux.kvs
from flux.job import JobID, cancel
from flux.resource import resource_list
from state import core_set, jobs, modules

#: In Flux's reason for a stopped queue, when its scheduler has given up
OFFLINE = "Scheduler is offline"
#: Seconds after the start in which that can happen
WATCH = 15.0
NOTE = "minicluster: the lead was killed while Flux gave this job its nodes: submit it again"
#: The schedulers' modules, in an order in which they can be removed
SCHEDULERS = ("sched-simple", "sched-fluxion-qmanager", "sched-fluxion-feasibility", "sched-fluxion-resource")


def scheduler_is_offline(handle: Any) -> bool:
    """Return whether the scheduler is loaded and has stopped."""
    try:
        status = handle.rpc("job-manager.queue-status", {}, nodeid=0).get()
    except OSError:  # with named queues there is no single status
        return False
    return OFFLINE in str(status.get("stop_reason", ""))


def cancel_half_started(handle: Any) -> None:
    """Cancel the jobs whose resources are in the KVS, but not in their eventlog.

    Flux writes first the one, then the other. A kill in between leaves a job that Flux 0.88 refuses to schedule
    ("already allocated"), and then it schedules no other job either.
    """
    for job in jobs(handle, "sched", []):
        if flux.kvs.exists(handle, f"{JobID(job['id']).kvs}.R"):
            cancel(handle, job["id"], NOTE)


def leaked_cores(handle: Any) -> set[tuple[int, int]]:
    """Return the cores, as (rank, core), that Fluxion holds for no job; none with another scheduler.

    Flux fails the jobs that ran when the lead was killed while the scheduler starts, which then never learns that they
    ended (flux-core issue 6121).
    """
    query = {"criteria": "sched-now=allocated", "format": "rv1_nosched"}
    try:
        held = core_set(handle.rpc("sched-fluxion-resource.find", query).get()["R"])
    except OSError:
        return set()
    return held - core_set(resource_list(handle).get().allocated.encode())


def restart_scheduler(handle: Any) -> None:
    """Make the scheduler ask Flux again which resources are allocated and which jobs wait."""
    # all modules of Fluxion: to restart its qmanager alone crashes the broker when there are jobs
    loaded = [module for module in SCHEDULERS if module in modules(handle)]
    for verb, names in (("remove", loaded), ("load", loaded[::-1])):
        for name in names:
            subprocess.run(["flux", "module", verb, name], capture_output=True, check=False)


def recover(handle: Any) -> None:
    """Watch the scheduler for WATCH seconds, and repair what is wrong. Raises OSError."""
    end = time.monotonic() + WATCH
    before: set[tuple[int, int]] = set()
    while time.monotonic() < end:
        leaked = leaked_cores(handle)
        if scheduler_is_offline(handle):
            cancel_half_started(handle)
            restart_scheduler(handle)
        elif leaked & before:  # seen twice: cores that are just being freed are not leaked
            restart_scheduler(handle)
        before = leaked
        time.sleep(1)
