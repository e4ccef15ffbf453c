"""leave.py lead|worker TOLD BEGUN LEAVE KILL END FOLDER ON_STOP kept|lost ARCHIVE REPORT: a pod lets its jobs end.

TOLD and BEGUN are seconds of the machine's uptime: when the pod was told to stop, and when this program was started.
LEAVE, KILL and END are the parts of the grace period, in seconds: jobs may go on, jobs are ended, the broker ends.
A worker drains its own rank; the lead stops the queue, dumps it to ARCHIVE and reports its jobs to REPORT, unless these
are empty. Jobs that still run after LEAVE are told to stop, a launcher before them. FOLDER/stopping is created before:
what ends after that did not end by itself. FOLDER/launcher has the process id of a launcher that runs.
Jobs that may run again, all with ON_STOP `requeue`, first get a copy in the queue, unless the queue is `lost` with the
pod (requeue.py).
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, NamedTuple

import flux
from flux.job import JobID, cancel
from flux.job import kill as send
from job_report import write
from node_jobs import children, descendants, send_to_all
from requeue import Requeue
from state import jobs, nodes, parse_idset

STOP_REASON = "minicluster: the pod was told to stop"
#: States of a broker that may get jobs, and of one that ends (flux-broker's state machine); before, it has not joined
ONLINE_STATES = ("quorum", "run")
ENDING_STATES = ("cleanup", "shutdown", "finalize", "goodbye", "unload-builtins", "exit")
#: State of a broker that can reach the lead and gets jobs soon
CONNECTED = "init"
JOBS_POLL_SECONDS = 0.5
#: Part of KILL that a cancelled job has between SIGTERM and SIGKILL; Flux itself gives 5 s (exec.kill-timeout)
TERM_PART = 5 / 8
OVER = "the pod's grace period is over"
#: Seconds that the lead's work has to write its exit code, once its jobs have ended
EXIT_CODE_SECONDS = 5.0
#: Most seconds for the attributes of jobs in a report that the broker's end is to replace
ATTRIBUTES_SECONDS = 2.0
#: A broker, whose end starts a Python too, takes at most this many times as long to end as this program to start
SLOWNESS_FACTOR = 3.0


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
            time.sleep(JOBS_POLL_SECONDS / 5)
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


class Times(NamedTuple):
    """The rest of the grace period, in seconds."""

    leave: float  #: jobs may go on
    kill: float  #: jobs are ended


class Paths(NamedTuple):
    """Where this program leaves what others read."""

    folder: Path
    archive: str  #: "" for none
    report: str  #: the same


def uptime() -> float:
    """Return the seconds since the machine's start, as /proc/uptime has them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def times(now: float, told: float, begun: float, parts: tuple[float, float, float]) -> Times:
    """Return the rest of the grace period's parts at an uptime. On a slow machine the broker gets more of it."""
    _, kill, end = parts
    grace = sum(parts)
    end = min(max(end, SLOWNESS_FACTOR * (now - begun)), max(end, grace / 2))
    left = max(0.0, told + grace - end - now)
    return Times(max(0.0, left - kill), min(kill, left))


def stop_queue(handle: Any) -> None:
    """Let no more jobs start anywhere."""
    stop = {"start": False, "all": True, "nocheckpoint": True, "reason": STOP_REASON}
    handle.rpc("job-manager.queue-start", stop, nodeid=0).get()


def dump(archive: str, seconds: float) -> None:
    """Replace an archive by Flux's state as it is. The broker does so at its end, for which there may be no time."""
    new = f"{archive}.early.tgz"
    words = ["flux", "dump", "--quiet", new]
    try:
        subprocess.run(words, check=True, timeout=max(seconds, 1.0), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        Path(new).replace(archive)
        Path(f"{archive}.begun").unlink(missing_ok=True)
    except (OSError, subprocess.SubprocessError) as error:
        why = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip().replace("\n", "; ") or error
        print(f"minicluster: the queue is dumped at the broker's end only: {why}", flush=True)


def wait_until(done: Callable[[], bool], seconds: float, poll: float = JOBS_POLL_SECONDS) -> bool:
    """Wait until ``done`` is true, for ``seconds`` at most; return whether it is."""
    end = time.monotonic() + seconds
    while not (result := done()) and time.monotonic() < end:
        time.sleep(poll)
    return result


def wait_for_exit_code(folder: Path, seconds: float) -> None:
    """Wait until job.sh has written the exit code of the work."""
    if (folder / "working").exists():
        wait_until((folder / "exit-code").exists, seconds, JOBS_POLL_SECONDS / 5)


def stop_launcher(launcher: Path, seconds: float) -> None:
    """Tell a launcher and its descendants to stop, and wait for its end. A shell does not pass signals on."""
    if not launcher.exists():
        return
    with suppress(OSError, ValueError):
        send_to_all(descendants([int(launcher.read_text())], children()), signal.SIGTERM)
        print(f"minicluster: the launcher is told to stop: {OVER}", flush=True)
    wait_until(lambda: not launcher.exists(), seconds, JOBS_POLL_SECONDS / 5)


def let_jobs_end(handle: Any, rank: int | None, launcher: Path, seconds: float, requeue: Requeue) -> bool:
    """Wait until no job and no launcher runs, for ``seconds`` at most, and warn the jobs; return whether none runs.

    It looks twice: the scheduler may give a job the rank before it learns that it is drained.
    """
    end = time.monotonic() + seconds
    was_idle = False

    def done() -> bool:
        nonlocal was_idle
        before, was_idle = was_idle, not launcher.exists() and is_idle(handle, rank)
        if was_idle:
            return before or time.monotonic() >= end
        requeue.warn(running_jobs(handle, rank), end - time.monotonic())
        return False

    return wait_until(done, seconds)


def cancel_jobs(handle: Any, rank: int | None, end: float, requeue: Requeue) -> None:
    """Cancel the jobs that run, and kill those that ignore it, until a time of the monotonic clock."""
    running = running_jobs(handle, rank)
    copies = requeue.put_back(running)
    for job in running:
        name = JobID(job).f58plain
        again = f" and runs again as {copies[name]}" if name in copies else ""
        print(f"minicluster: job {name} is cancelled{again}: {OVER}", flush=True)
        cancel(handle, job, f"{STOP_REASON} and its grace period is over{again.replace(' and', ': it')}")
    wait_until(lambda: is_idle(handle, rank), (end - time.monotonic()) * TERM_PART)
    for job in running_jobs(handle, rank):
        send(handle, job, signal.SIGKILL)
    wait_until(lambda: is_idle(handle, rank), end - time.monotonic())


def main(handle: Any, role: str, left: Times, paths: Paths, requeue: Requeue) -> None:
    """Leave the instance: after this the broker can be told to stop. Raises OSError when the broker can't be asked."""
    begin = time.monotonic()
    rank = None if role == "lead" else int(handle.attr_get("rank"))
    if not stop_joining(handle, rank, left.leave + left.kill):
        return
    if rank is None:
        stop_queue(handle)
        if paths.archive:
            dump(paths.archive, left.leave + left.kill)
        if paths.report:
            try:
                write(handle, min(ATTRIBUTES_SECONDS, left.leave / 2), Path(paths.report))
            except OSError as error:
                print(f"minicluster: the report of the jobs failed: {error}", flush=True)
    else:
        drain(handle, rank)
    seconds, kill = left.leave - (time.monotonic() - begin), left.kill
    launcher = paths.folder / "launcher"
    launched = launcher.exists()
    had_work = launched or bool(running_jobs(handle, rank))
    if let_jobs_end(handle, rank, launcher, seconds, requeue):
        if had_work:
            wait_for_exit_code(paths.folder, min(EXIT_CODE_SECONDS, kill))
        return
    (paths.folder / "stopping").touch()
    end = time.monotonic() + kill
    stop_launcher(launcher, kill / 2)
    try:
        cancel_jobs(handle, rank, end, requeue)
    except OSError:
        # an instance whose launcher is gone ends by itself, and cancels its jobs
        if not launched:
            raise


if __name__ == "__main__":
    role, told, begun, leave, kill, end, folder, on_stop, queue, *files = sys.argv[1:]
    left = times(uptime(), float(told), float(begun), (float(leave), float(kill), float(end)))
    try:
        handle = flux.Flux()
        main(handle, role, left, Paths(Path(folder), *files), Requeue(handle, on_stop, queue == "lost"))
    except OSError as error:
        # the instance has ended meanwhile, or the lead is gone
        sys.exit(f"minicluster: the broker can't be asked about its jobs: {error}")
