"""Repairs the scheduler of a kept queue after the last lead was killed.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import subprocess
import time
from typing import Any

import flux.kvs
from flux.job import JobID, cancel
from flux.resource import resource_list
from need import Room
from pending import Pending
from put_back import Copies
from state import core_set, job_counts, jobs, modules, nodes, waiting_jobs

#: Words in Flux's reason for a stopped queue, when its scheduler has given up
OFFLINE = "Scheduler is offline"
#: Seconds after the start for which the scheduler is watched, at least
SCHEDULER_SECONDS = 15.0
#: Seconds for which a job may wait although idle nodes have room for it, doubled each time; the most tries for a job
IDLE_SECONDS, JOB_TRIES = 10.0, 4
#: Seconds without a change of any job after which held cores are leaked: where jobs are short, Fluxion has many cores
#: yet to free. The most tries: of a job that Flux can't save, on a full volume, no core is allocated, and no restart
#: frees those that it has
LEAK_SECONDS, CORE_TRIES = 5.0, 4
#: Seconds in which a module is removed or loaded
MODULE_SECONDS = 60.0
NOTE = "minicluster: the lead was killed while Flux gave this job its nodes, before it ran"
#: The schedulers' modules, in the order in which they can be removed
SCHEDULERS = ("sched-simple", "sched-fluxion-qmanager", "sched-fluxion-feasibility", "sched-fluxion-resource")


def scheduler_is_offline(handle: Any) -> bool:
    """Return whether the scheduler is loaded and has stopped."""
    return OFFLINE in str(queue_status(handle).get("stop_reason", ""))


def queue_status(handle: Any, name: str = "") -> dict[str, Any]:
    """Return the status of a queue; an empty map for "" if all queues have names."""
    try:
        status = handle.rpc("job-manager.queue-status", {"name": name} if name else {}, nodeid=0).get()
    except OSError:
        return {}
    return dict(status)


def replace_half_started(handle: Any, copies: Copies) -> None:
    """Submit the jobs once more whose resources are in the KVS, but not in their eventlog: none of them has run.

    Flux writes them to the KVS first. A kill in between leaves a job that Flux 0.88 refuses to schedule ("already
    allocated"), and after that it schedules no other job either. Raises OSError.
    """
    for job in jobs(handle, "sched", ["urgency"]):
        if flux.kvs.exists(handle, f"{JobID(job['id']).kvs}.R"):
            copy = copies.make(handle, job, {}, runs=False)
            cancel(handle, job["id"], f"{NOTE}: it runs again as {JobID(copy).f58plain}")


def leaked_cores(handle: Any) -> set[tuple[int, int]]:
    """Return the cores, as (rank, core), that Fluxion holds for no job; none with another scheduler.

    While the scheduler starts, Flux fails the jobs that ran when the lead was killed. The scheduler never learns that
    they ended (flux-core issue 6121).
    """
    query = {"criteria": "sched-now=allocated", "format": "rv1_nosched"}
    try:
        held = core_set(handle.rpc("sched-fluxion-resource.find", query).get()["R"])
    except OSError:
        return set()
    return held - core_set(resource_list(handle).get().allocated.encode())


def startable(handle: Any, pending: Pending) -> int | None:
    """Return the first job of the queue if it waits although idle nodes have room for it; None otherwise."""
    first = waiting_jobs(handle)[:1]
    there = nodes(handle)
    room = Room(there, sorted(there.online - there.drained.keys() - there.used.keys()))
    if not any(room.place(request) for request in pending.requests(first, 0)):
        return None
    status = queue_status(handle, first[0].get("queue") or "")
    return int(first[0]["id"]) if status.get("start", not status.get("stop_reason")) else None


def no_ranks(_handle: Any, _constraints: str) -> frozenset[int]:
    """For Pending: only the scheduler knows where a job with constraints may run."""
    return frozenset()


def restart_scheduler(handle: Any, why: str) -> None:
    """Make the scheduler ask Flux again which resources are allocated and which jobs wait. Raises OSError."""
    print(f"minicluster: {why} after the last lead was killed: the scheduler starts again", flush=True)
    # all modules of Fluxion: if there are jobs, a restart of the qmanager alone crashes the broker
    loaded = [module for module in SCHEDULERS if module in modules(handle)]
    failed = ""
    for verb, names in (("remove", loaded), ("load", loaded[::-1])):
        for name in names:
            why = _flux_module(verb, name)
            if why:
                failed = f"the scheduler can't start again: flux module {verb} {name}: {why}"
    # only now: all modules that can be loaded are
    if failed:
        raise OSError(failed)


def _flux_module(verb: str, name: str) -> str:
    """Remove or load a module; return why that failed, "" if it didn't."""
    words = ["flux", "module", verb, name]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=MODULE_SECONDS)
    except subprocess.TimeoutExpired:
        return f"it has not ended after {MODULE_SECONDS:g} s"
    return done.stderr.strip() or f"exit code {done.returncode}" if done.returncode else ""


def recover(handle: Any, copies: Copies) -> None:
    """Watch the scheduler for SCHEDULER_SECONDS, and while a job waits beside idle nodes, or cores may be leaked.

    Repairs what is wrong. Raises OSError.
    """
    end = time.monotonic() + SCHEDULER_SECONDS
    pending = Pending(handle, no_ranks)
    last: tuple[set[tuple[int, int]], dict[str, int]] = set(), {}
    stuck: int | None = None
    since, waits, tries, core_tries = 0.0, 0.0, 0, 0
    while True:
        leaked, first = leaked_cores(handle), startable(handle, pending)
        look = leaked, job_counts(handle) if leaked else {}
        if look != last:
            last, since = look, time.monotonic()
        if first != stuck:
            stuck, waits, tries = first, time.monotonic() + IDLE_SECONDS, 0
        if scheduler_is_offline(handle):
            replace_half_started(handle, copies)
            restart_scheduler(handle, "the scheduler stopped")
        elif leaked and core_tries < CORE_TRIES and time.monotonic() >= since + LEAK_SECONDS:
            restart_scheduler(handle, f"the scheduler holds {len(leaked)} cores for no job")
            core_tries += 1
            since = time.monotonic()
        elif stuck and tries < JOB_TRIES and time.monotonic() >= waits:
            restart_scheduler(handle, f"job {JobID(stuck).f58plain} waits beside idle nodes")
            tries += 1
            waits = time.monotonic() + IDLE_SECONDS * 2**tries
        is_repaired = (not stuck or tries == JOB_TRIES) and (not leaked or core_tries == CORE_TRIES)
        if time.monotonic() >= end and is_repaired:
            return
        time.sleep(1)
