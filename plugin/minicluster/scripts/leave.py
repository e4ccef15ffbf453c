"""leave.py lead|worker SECONDS FOLDER: told to stop, this pod takes no more jobs and lets those it has end.

A worker drains its own rank; the lead stops the queue. What still runs after SECONDS is cancelled; the file
FOLDER/stopping is made before that, for what ends from then on did not end by itself.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import errno
import sys
import time
from pathlib import Path
from typing import Any

import flux
from flux.job import JobID, cancel
from state import ids, jobs, nodes

REASON = "minicluster: the pod was told to stop"
POLL = 0.5
#: Seconds for a cancelled job to end: SIGTERM, and SIGKILL 5 s later (exec.kill-timeout)
KILL = 8.0
#: Seconds for the lead's work to leave its exit code, once its jobs have ended
WORD = 5.0


def drain(handle: Any, rank: int) -> None:
    """Let no more jobs start on a rank. One that is drained already keeps its reason."""
    try:
        handle.rpc("resource.drain", {"targets": str(rank), "reason": REASON}, nodeid=0).get()
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise


def running(handle: Any, rank: int | None) -> list[dict[str, Any]]:
    """Return the jobs that run on a rank, or (None) anywhere."""
    found = jobs(handle, "running", ["ranks"])
    return [job for job in found if rank is None or rank in ids(job.get("ranks", ""))]


def wait(handle: Any, rank: int | None, seconds: float) -> bool:
    """Wait until nothing of a rank is allocated, or (None) nothing runs; say whether that came in time."""
    end = time.monotonic() + seconds
    while True:
        busy = bool(running(handle, None)) if rank is None else rank in nodes(handle).used
        if not busy or time.monotonic() >= end:
            return not busy
        time.sleep(POLL)


def hear(folder: Path) -> None:
    """Wait until the lead's work has left its exit code."""
    end = time.monotonic() + WORD
    while time.monotonic() < end and not (folder / "exit-code").exists():
        time.sleep(POLL / 5)


def main(role: str, seconds: float, folder: Path) -> None:
    """Leave: after this the broker can be told to stop."""
    handle = flux.Flux()
    if handle.rpc("state-machine.get").get()["state"] != "run":
        return
    rank = None if role == "lead" else int(handle.attr_get("rank"))
    if rank is None:
        stop = {"start": False, "all": True, "nocheckpoint": True, "reason": REASON}
        handle.rpc("job-manager.queue-start", stop, nodeid=0).get()
    else:
        drain(handle, rank)
    had_jobs = bool(running(handle, rank))
    if wait(handle, rank, seconds):
        if had_jobs and (folder / "working").exists():
            hear(folder)
        return
    (folder / "stopping").touch()
    for job in running(handle, rank):
        print(f"minicluster: job {JobID(job['id']).f58plain} is cancelled: the pod's grace period is over", flush=True)
        cancel(handle, job["id"], f"{REASON} and its grace period is over")
    wait(handle, rank, KILL)


if __name__ == "__main__":
    try:
        main(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]))
    except OSError as error:
        # the instance ended meanwhile, or the lead is gone: there is nobody to tell
        sys.exit(f"minicluster: the broker can't be asked about its jobs: {error}")
