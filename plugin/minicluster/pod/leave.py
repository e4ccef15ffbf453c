"""leave.py lead|worker SECONDS KILL FOLDER: told to stop, this pod takes no more work and lets what it has end.

A worker drains its own rank; the lead stops the queue. What still runs after SECONDS is told to stop and has KILL
seconds for that: a launcher first, then the jobs. The file FOLDER/stopping is made before that, for what ends from
then on did not end by itself. FOLDER/launcher has the process id of a launcher that runs.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable

import flux
from flux.job import JobID, cancel
from flux.job import kill as send
from state import ids, jobs, nodes

REASON = "minicluster: the pod was told to stop"
POLL = 0.5
#: Part of the time to end that a cancelled job has from SIGTERM to SIGKILL; Flux' own is 5 s (exec.kill-timeout)
TERM = 5 / 8
OVER = "the pod's grace period is over"
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


def until(done: Callable[[], bool], seconds: float, poll: float = POLL) -> bool:
    """Wait until something is so; say whether that came in time."""
    end = time.monotonic() + seconds
    while not (found := done()) and time.monotonic() < end:
        time.sleep(poll)
    return found


def idle(handle: Any, rank: int | None) -> bool:
    """Say whether nothing of a rank is allocated, or (None) nothing runs."""
    return not running(handle, None) if rank is None else rank not in nodes(handle).used


def tree(pid: int) -> list[int]:
    """Return a process and all that it started, by process id (proc_pid_stat(5))."""
    children: dict[int, list[int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(file.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(file.parent.name))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


def terminate(launcher: Path) -> None:
    """Tell a launcher to stop, with what it runs itself: a shell does not pass signals on."""
    with suppress(OSError, ValueError):
        for pid in tree(int(launcher.read_text())):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        print(f"minicluster: the launcher is told to stop: {OVER}", flush=True)


def main(role: str, seconds: float, kill: float, folder: Path) -> None:
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
    launcher = folder / "launcher"
    launched = launcher.exists()
    had_work = launched or bool(running(handle, rank))
    if until(lambda: not launcher.exists() and idle(handle, rank), seconds):
        if had_work and (folder / "working").exists():
            until((folder / "exit-code").exists, min(WORD, kill), POLL / 5)
        return
    (folder / "stopping").touch()
    end = time.monotonic() + kill
    if launcher.exists():
        terminate(launcher)
        until(lambda: not launcher.exists(), kill / 2, POLL / 5)
    try:
        for job in running(handle, rank):
            print(f"minicluster: job {JobID(job['id']).f58plain} is cancelled: {OVER}", flush=True)
            cancel(handle, job["id"], f"{REASON} and its grace period is over")
        until(lambda: idle(handle, rank), (end - time.monotonic()) * TERM)
        for job in running(handle, rank):
            send(handle, job["id"], signal.SIGKILL)
        until(lambda: idle(handle, rank), end - time.monotonic())
    except OSError:
        # without its launcher the instance ends by itself, and cancels what runs
        if not launched:
            raise


if __name__ == "__main__":
    try:
        main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
    except OSError as error:
        # the instance ended meanwhile, or the lead is gone: there is nobody to tell
        sys.exit(f"minicluster: the broker can't be asked about its jobs: {error}")
