"""leave.py lead|worker SECONDS KILL FOLDER: a pod that was told to stop accepts no more jobs and lets its jobs end.

A worker drains its own rank; the lead stops the queue. Jobs that still run after SECONDS are told to stop, a launcher
before them, and get KILL seconds for that. FOLDER/stopping is created before: what ends after that did not end by
itself. FOLDER/launcher has the process id of a launcher that runs.
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
from state import jobs, nodes, parse_idset

REASON = "minicluster: the pod was told to stop"
POLL = 0.5  # seconds
#: Part of KILL that a cancelled job has between SIGTERM and SIGKILL; Flux itself gives 5 s (exec.kill-timeout)
TERM_PART = 5 / 8
OVER = "the pod's grace period is over"
#: Seconds that the lead's work has to write its exit code, once its jobs have ended
EXIT_CODE_TIME = 5.0


def drain(handle: Any, rank: int) -> None:
    """Let no more jobs start on a rank. A rank that is drained already keeps its reason."""
    try:
        handle.rpc("resource.drain", {"targets": str(rank), "reason": REASON}, nodeid=0).get()
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise


def stop_queue(handle: Any) -> None:
    """Let no more jobs start anywhere."""
    stop = {"start": False, "all": True, "nocheckpoint": True, "reason": REASON}
    handle.rpc("job-manager.queue-start", stop, nodeid=0).get()


def running_jobs(handle: Any, rank: int | None) -> list[dict[str, Any]]:
    """Return the jobs that run on a rank, or (None) on any."""
    found = jobs(handle, "running", ["ranks"])
    return [job for job in found if rank is None or rank in parse_idset(job.get("ranks", ""))]


def is_idle(handle: Any, rank: int | None) -> bool:
    """Return whether nothing of a rank is allocated, or (None) whether no job runs."""
    return not running_jobs(handle, None) if rank is None else rank not in nodes(handle).used


def wait_until(done: Callable[[], bool], seconds: float, poll: float = POLL) -> bool:
    """Wait until ``done`` is true, for ``seconds`` at most; return whether it is."""
    end = time.monotonic() + seconds
    while not (found := done()) and time.monotonic() < end:
        time.sleep(poll)
    return found


def wait_for_exit_code(folder: Path, seconds: float) -> None:
    """Wait until job.sh has written the exit code of the work."""
    if (folder / "working").exists():
        wait_until((folder / "exit-code").exists, seconds, POLL / 5)


def process_tree(pid: int) -> list[int]:
    """Return the ids of a process and all its descendants (proc_pid_stat(5))."""
    children: dict[int, list[int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(file.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(file.parent.name))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


def stop_launcher(launcher: Path, seconds: float) -> None:
    """Tell a launcher and its descendants to stop, and wait for its end. A shell does not pass signals on."""
    if not launcher.exists():
        return
    with suppress(OSError, ValueError):
        for pid in process_tree(int(launcher.read_text())):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        print(f"minicluster: the launcher is told to stop: {OVER}", flush=True)
    wait_until(lambda: not launcher.exists(), seconds, POLL / 5)


def cancel_jobs(handle: Any, rank: int | None, end: float) -> None:
    """Cancel the jobs that run, and kill those that ignore it, until a time of the monotonic clock."""
    for job in running_jobs(handle, rank):
        print(f"minicluster: job {JobID(job['id']).f58plain} is cancelled: {OVER}", flush=True)
        cancel(handle, job["id"], f"{REASON} and its grace period is over")
    wait_until(lambda: is_idle(handle, rank), (end - time.monotonic()) * TERM_PART)
    for job in running_jobs(handle, rank):
        send(handle, job["id"], signal.SIGKILL)
    wait_until(lambda: is_idle(handle, rank), end - time.monotonic())


def main(role: str, seconds: float, kill: float, folder: Path) -> None:
    """Leave the instance: after this the broker can be told to stop. Raises OSError when the broker can't be asked."""
    handle = flux.Flux()
    if handle.rpc("state-machine.get").get()["state"] != "run":
        return
    rank = None if role == "lead" else int(handle.attr_get("rank"))
    if rank is None:
        stop_queue(handle)
    else:
        drain(handle, rank)
    launcher = folder / "launcher"
    launched = launcher.exists()
    had_work = launched or bool(running_jobs(handle, rank))
    if wait_until(lambda: not launcher.exists() and is_idle(handle, rank), seconds):
        if had_work:
            wait_for_exit_code(folder, min(EXIT_CODE_TIME, kill))
        return
    (folder / "stopping").touch()
    end = time.monotonic() + kill
    stop_launcher(launcher, kill / 2)
    try:
        cancel_jobs(handle, rank, end)
    except OSError:
        # an instance whose launcher is gone ends by itself, and cancels its jobs
        if not launched:
            raise


if __name__ == "__main__":
    try:
        main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]))
    except OSError as error:
        # the instance has ended meanwhile, or the lead is gone
        sys.exit(f"minicluster: the broker can't be asked about its jobs: {error}")
