"""settle.py: keeps the queue stopped before a MiniCluster is replaced, for as long as the client is there.

Each reply is a JSON object on a line: how many jobs are ``running``, and whether that is ``settled``. The client may
send ``{"end": true}``: the running jobs go back into the queue and are cancelled, and the reply has the ``copies`` of
those that run again, by their names, and the ``lost``, which can't; or ``{"start": true}``: the queue goes on, and the
reply is ``started``. It goes on, too, when the client is gone, however that ended. The cluster's own work is left
alone: the next lead submits it again. The stop is not stored: the next lead's queue runs, if nobody had stopped it.
Sent with offers.py, state.py and requeue.py; runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from contextlib import redirect_stdout, suppress
from typing import Any, Iterator, TextIO

import flux
from flux.job import JobID, cancel
from requeue import Requeue, lookup, own_attributes
from state import jobs

REPLACE_REASON = "minicluster: the MiniCluster is replaced"
SETTLE_POLL_SECONDS = 0.2
#: Seconds between two replies where nothing changes
SETTLE_SIGN_SECONDS = 1.0


def queues(handle: Any) -> Iterator[tuple[dict[str, Any], bool, str]]:
    """Yield how to name each queue, whether it runs, and the reason if not. Raises OSError."""
    for name in handle.rpc("job-manager.queue-list", nodeid=0).get()["queues"] or [""]:
        named = {"name": name} if name else {}
        status = handle.rpc("job-manager.queue-status", named, nodeid=0).get()
        reason = status.get("stop_reason", "")
        yield named, bool(status.get("start", not reason)), reason


def _turn(handle: Any, named: dict[str, Any], start: bool) -> None:
    change = {**named, "start": start, "all": False, "nocheckpoint": True}
    handle.rpc("job-manager.queue-start", change if start else {**change, "reason": REPLACE_REASON}, nodeid=0).get()


def stop_queues(handle: Any) -> bool:
    """Let no more jobs start; return whether any could. A queue that somebody stopped keeps its reason."""
    running = [named for named, runs, _ in queues(handle) if runs]
    for named in running:
        _turn(handle, named, start=False)
    return bool(running)


def start_queues(handle: Any) -> None:
    """Start the queues that are stopped by us, and by nobody since, such as a pod that was told to stop."""
    for named, _, reason in queues(handle):
        if reason == REPLACE_REASON:
            _turn(handle, named, start=True)


def running(handle: Any, works: dict[int, bool], states: str = "running") -> list[int]:
    """Return the jobs that run, without the cluster's own work. Raises OSError.

    With the states ``run`` they are those that are not ending yet. ``works`` keeps which jobs are such work, so that a
    jobspec is read once and not at each look.
    """
    ids = [job["id"] for job in jobs(handle, states, [])]
    for job in ids:
        if job not in works:
            works[job] = bool(own_attributes(lookup(handle, job)).get("work"))
    return [job for job in ids if not works[job]]


def end_jobs(handle: Any, works: dict[int, bool]) -> dict[str, Any]:
    """Cancel the jobs that run, each after its copy is in the queue if it may run again.

    Raises OSError, also when a copy could not be made: then nothing is cancelled.
    """
    requeue, copies, names = Requeue(handle, "requeue", lost=False), {}, {}
    there = running(handle, works, "run")
    # a job that got its nodes just before the queue stopped is seen late
    while late := [job for job in there if job not in names]:
        stop_queues(handle)
        names.update({job: JobID(job).f58plain for job in late})
        copies.update(requeue.put_back(late))
        there = running(handle, works, "run")
    again = {job for job in names if requeue.says(job)[0]}
    missing = [names[job] for job in there if job in again and names[job] not in copies]
    if missing:
        raise OSError(f"job {missing[0]} can't be put back into the queue")
    for job, name in names.items():
        note = f"{REPLACE_REASON}: it runs again as {copies[name]}" if name in copies else REPLACE_REASON
        with suppress(OSError):  # it has just ended
            cancel(handle, job, note)
    return {"copies": copies, "lost": [name for job, name in names.items() if job not in again]}


def messages() -> Iterator[dict[str, Any]]:
    """Yield what the client says, and {} each moment, until it is gone."""
    rest = b""
    while True:
        yield {}
        if not select.select([0], [], [], SETTLE_POLL_SECONDS)[0]:
            continue
        data = os.read(0, 1 << 16)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        yield from map(json.loads, lines)


def hold(handle: Any, out: TextIO) -> None:
    """Keep the queue stopped, and tell of the jobs, until the client lets go or is gone. Raises OSError."""

    def reply(**answer: Any) -> None:
        out.write(json.dumps(answer) + "\n")
        out.flush()

    works: dict[int, bool] = {}
    told, due, was_idle = None, 0.0, False
    try:
        for message in messages():
            if "start" in message:
                start_queues(handle)
                reply(started=True)
                return
            if "end" in message:
                reply(**end_jobs(handle, works))
            # a queue that somebody starts is stopped again; a job may have got its nodes just before
            has_stopped, count = stop_queues(handle), len(running(handle, works))
            is_idle = not (has_stopped or count)
            counts = {"running": count, "settled": is_idle and was_idle}
            was_idle = is_idle
            if counts != told or time.monotonic() >= due:
                reply(**counts)
                told, due = counts, time.monotonic() + SETTLE_SIGN_SECONDS
    finally:
        start_queues(handle)


if __name__ == "__main__":
    replies = sys.stdout
    with redirect_stdout(sys.stderr):  # of problems with copies
        try:
            hold(flux.Flux(), replies)
        except BrokenPipeError:
            os._exit(1)  # the client is gone; a flush would complain
        except OSError as error:
            sys.exit(str(error))
