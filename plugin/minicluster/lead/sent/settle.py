"""settle.py wait|end SECONDS: stops the queue before a MiniCluster is replaced, and waits for its jobs or ends them.

``wait`` returns when no job runs, or after SECONDS. ``end`` puts the running jobs back into the queue and cancels them;
it leaves alone the cluster's own work, which the next lead submits again. Prints a JSON object: the number of jobs that
are still ``running``, the ``copies`` of those that run again by their names, and the ``lost``, which can't run again.
The stop is not stored: the next lead's queue runs, unless somebody had stopped it.
Sent with offers.py, state.py, requeue.py and again.py; runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import redirect_stdout, suppress
from typing import Any

import flux
from again import Requeue
from flux.job import JobID, cancel
from requeue import lookup, own_attributes
from state import jobs

REPLACE_REASON = "minicluster: the MiniCluster is replaced"
SETTLE_POLL_SECONDS = 0.2


def stop_queue(handle: Any) -> None:
    """Let no more jobs start."""
    stop = {"start": False, "all": True, "nocheckpoint": True, "reason": REPLACE_REASON}
    handle.rpc("job-manager.queue-start", stop, nodeid=0).get()


def running(handle: Any, works: dict[int, bool]) -> list[int]:
    """Return the jobs that run, without the cluster's own work. Raises OSError.

    ``works`` keeps which jobs are such work, so that a jobspec is read once and not at each look.
    """
    found = [job["id"] for job in jobs(handle, "running", [])]
    for job in found:
        if job not in works:
            works[job] = bool(own_attributes(lookup(handle, job)).get("work"))
    return [job for job in found if not works[job]]


def wait_for_end(handle: Any, seconds: float, works: dict[int, bool]) -> int:
    """Return how many jobs run, when none does or the seconds are over. Raises OSError."""
    end = time.monotonic() + seconds
    was_idle = False  # it looks twice: the scheduler may have given a job its nodes just before the stop
    while ((left := len(running(handle, works))) or not was_idle) and time.monotonic() < end:
        was_idle = not left
        time.sleep(SETTLE_POLL_SECONDS)
    return left


def end_jobs(handle: Any, works: dict[int, bool]) -> dict[str, Any]:
    """Cancel the jobs that run, each after its copy is in the queue if it may run again.

    Raises OSError, also when a copy could not be made: then nothing is cancelled.
    """
    requeue, found = Requeue(handle, "requeue", lost=False), running(handle, works)
    copies = requeue.put_back(found)
    names = {job: JobID(job).f58plain for job in found}
    still = [job for job in running(handle, works) if requeue.says(job)[0]]
    missing = [job for job in still if JobID(job).f58plain not in copies]
    if missing:
        raise OSError(f"job {JobID(missing[0]).f58plain} can't be put back into the queue")
    for job, name in names.items():
        note = f"{REPLACE_REASON}: it runs again as {copies[name]}" if name in copies else REPLACE_REASON
        with suppress(OSError):  # it has just ended
            cancel(handle, job, note)
    return {"copies": copies, "lost": [names[job] for job in found if not requeue.says(job)[0]]}


def main(action: str, seconds: float) -> dict[str, Any]:
    """Do the action; return what is printed. Raises OSError."""
    handle = flux.Flux()
    stop_queue(handle)
    works: dict[int, bool] = {}
    ended = end_jobs(handle, works) if action == "end" else {"copies": {}, "lost": []}
    return {**ended, "running": wait_for_end(handle, seconds, works)}


if __name__ == "__main__":
    with redirect_stdout(sys.stderr):  # of problems with copies
        try:
            found = main(sys.argv[1], float(sys.argv[2]))
        except OSError as error:
            sys.exit(str(error))
    print(json.dumps(found))
