"""leave.py lead|worker TOLD BEGUN LEAVE KILL END FOLDER ON_STOP kept|lost ARCHIVE: a leaving pod lets its jobs end.

TOLD and BEGUN are seconds of the machine's uptime: when the pod was told to stop, and when this program was started.
LEAVE, KILL and END are the parts of the grace period, in seconds: jobs may go on, jobs are ended, the broker ends.
A worker drains its own rank; the lead stops the queue, and dumps it to ARCHIVE unless that is empty. Jobs that still
run after LEAVE are told to stop, a launcher before them. FOLDER/stopping is created before: what ends after that did
not end by itself. FOLDER/launcher has the process id of a launcher that runs.
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
from requeue import ask_for_copies, lookup, may_run_again, warning
from state import jobs, nodes, parse_idset

REASON = "minicluster: the pod was told to stop"
POLL = 0.5  # seconds
#: Part of KILL that a cancelled job has between SIGTERM and SIGKILL; Flux itself gives 5 s (exec.kill-timeout)
TERM_PART = 5 / 8
OVER = "the pod's grace period is over"
#: Seconds that the lead's work has to write its exit code, once its jobs have ended
EXIT_CODE_TIME = 5.0
#: The end of a broker, which starts a Python too, takes at most so many times as long as the start of this program
SLOWNESS = 3.0
#: States of a broker that may get jobs, and of one that ends (flux-broker's state machine); before, it has not joined
ONLINE, ENDS = ("quorum", "run"), ("cleanup", "shutdown", "finalize", "goodbye", "unload-builtins", "exit")
#: State of a broker that can reach the lead and gets jobs soon
CONNECTED = "init"
#: Starts the lead's undrainer
LEAVES = "minicluster.leave"


class Times(NamedTuple):
    """The rest of the grace period, in seconds."""

    leave: float  #: jobs may go on
    kill: float  #: jobs are ended


class Paths(NamedTuple):
    """Where this program leaves what others read."""

    folder: Path
    archive: str  #: "" for none


def uptime() -> float:
    """Return the seconds since the machine's start, as /proc/uptime has them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def times(now: float, told: float, begun: float, parts: tuple[float, float, float]) -> Times:
    """Return what is left, at an uptime, of the grace period's parts. A slow machine's broker gets more of it."""
    _, kill, end = parts
    grace = sum(parts)
    end = min(max(end, SLOWNESS * (now - begun)), max(end, grace / 2))
    left = max(0.0, told + grace - end - now)
    return Times(max(0.0, left - kill), min(kill, left))


def drain(handle: Any, rank: int) -> None:
    """Let no more jobs start on a rank. A rank that is drained already keeps its reason."""
    try:
        handle.rpc("resource.drain", {"targets": str(rank), "reason": REASON}, nodeid=0).get()
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise


def leave_rank(handle: Any, rank: int) -> None:
    """Drain a rank, and start the lead's undrainer, which undrains it when the pod is gone."""
    drain(handle, rank)
    handle.rpc("event.publish", {"topic": LEAVES, "flags": 0}, nodeid=0).get()


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
            leave_rank(handle, rank)
        while state not in ONLINE + ENDS and time.monotonic() < end:
            os.kill(broker, signal.SIGTERM)
            time.sleep(POLL / 5)
            state = handle.rpc("state-machine.get").get()["state"]
    return state in ONLINE


def stop_queue(handle: Any) -> None:
    """Let no more jobs start anywhere."""
    stop = {"start": False, "all": True, "nocheckpoint": True, "reason": REASON}
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


def running_jobs(handle: Any, rank: int | None) -> list[int]:
    """Return the jobs that run on a rank, or (None) on any."""
    found = jobs(handle, "running", ["ranks"])
    return [job["id"] for job in found if rank is None or rank in parse_idset(job.get("ranks", ""))]


def is_idle(handle: Any, rank: int | None) -> bool:
    """Return whether nothing of a rank is allocated, or (None) whether no job runs.

    The lead undrains the rank of a pod that is gone, which may come when the next pod of that rank leaves already: then
    this drains it again.
    """
    if rank is None:
        return not running_jobs(handle, None)
    found = nodes(handle)
    if rank in found.drained:
        return rank not in found.used
    drain(handle, rank)
    return False


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


class Requeue:
    """What a leaving pod does with its jobs that may run again."""

    def __init__(self, handle: Any, on_stop: str, lost: bool) -> None:
        """With the value of pod.onStop; ``lost``: the queue is lost with this pod, so no copy is made."""
        self.handle, self.on_stop, self.lost = handle, on_stop, lost
        #: By job: whether it may run again, and the signal and time of its warning
        self.known: dict[int, tuple[bool, tuple[int, float] | None]] = {}
        self.warned: set[int] = set()

    def look(self, job: int) -> tuple[bool, tuple[int, float] | None]:
        """Return what the attributes of a job say; a wrong one is logged, once. Raises OSError."""
        if job not in self.known:
            again, first = False, None
            try:
                jobspec = lookup(self.handle, job)
                again = may_run_again(jobspec, self.on_stop)
                first = warning(jobspec) if jobspec and again else None
            except ValueError as error:
                print(f"minicluster: job {JobID(job).f58plain}: {error}", flush=True)
            self.known[job] = again, first
        return self.known[job]

    def put_back(self, running: list[int]) -> dict[str, str]:
        """Return the copies, by name, of the jobs that may run again. Rank 0 makes them. Raises OSError."""
        wanted = [job for job in running if self.look(job)[0]]
        return ask_for_copies(self.handle, wanted) if wanted and not self.lost else {}

    def warn(self, running: list[int], left: float) -> None:
        """Send the signals that are due ``left`` seconds before the end, each once. Raises OSError."""
        due = {}
        for job in running:
            first = self.look(job)[1]
            if first and left <= first[1] and job not in self.warned:
                due[job] = signal.Signals(first[0])
        self.put_back(list(due))
        for job, signum in due.items():
            print(f"minicluster: job {JobID(job).f58plain} gets {signum.name}: the pod was told to stop", flush=True)
            self.warned.add(job)
            with suppress(OSError):  # it has just ended
                send(self.handle, job, signum)


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
        cancel(handle, job, f"{REASON} and its grace period is over{again.replace(' and', ': it')}")
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
    else:
        leave_rank(handle, rank)
    seconds, kill = left.leave - (time.monotonic() - begin), left.kill
    launcher = paths.folder / "launcher"
    launched = launcher.exists()
    had_work = launched or bool(running_jobs(handle, rank))
    if let_jobs_end(handle, rank, launcher, seconds, requeue):
        if had_work:
            wait_for_exit_code(paths.folder, min(EXIT_CODE_TIME, kill))
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
    role, told, begun, leave, kill, end, folder, on_stop, queue, archive = sys.argv[1:]
    left = times(uptime(), float(told), float(begun), (float(leave), float(kill), float(end)))
    try:
        handle = flux.Flux()
        main(handle, role, left, Paths(Path(folder), archive), Requeue(handle, on_stop, queue == "lost"))
    except OSError as error:
        # the instance has ended meanwhile, or the lead is gone
        sys.exit(f"minicluster: the broker can't be asked about its jobs: {error}")
