"""Jobs that may run again: how they are marked, and how rank 0 submits them once more when their pod is told to stop.

A leaving pod asks for a copy before it ends a job (leave.py); a thread on the lead answers (undrainer.py). The copy
waits in the queue until the job has ended without success. If the job succeeds, Flux ends the copy. Several pods may
ask for a copy of one job, even repeatedly. One thread answers all of them, and looks for a copy first, so there is only
one.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import errno
import json
import signal
import time
from contextlib import suppress
from typing import Any, Iterable, Iterator, Mapping

from begun import catch_up
from flux.job import JobID, job_kvs_lookup, submit
from flux.job import kill as send
from flux.job.list import job_list_id
from flux.util import parse_fsd
from state import jobs

#: The service on rank 0, and its method
SERVICE = "minicluster"
TOPIC = f"{SERVICE}.requeue"
#: Seconds to wait for the service, which starts with the lead
SERVICE_SECONDS = 3.0
#: Seconds for which a copy waits after a first loss, and for each earlier one
SOON_SECONDS, LATER_SECONDS = 1.0, 20.0
#: Flux's description of the dependency afternotok, as job-list shows it: `after-failure=ID`
AFTER_FAILURE = "after-failure"


def own_attributes(jobspec: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the attributes `user.minicluster.*` of a jobspec."""
    user = ((jobspec or {}).get("attributes") or {}).get("user") or {}
    own = user.get("minicluster")
    return own if isinstance(own, dict) else {}


def is_interactive(jobspec: Mapping[str, Any]) -> bool:
    """Return whether a person is at the job's terminal, as with `flux alloc`."""
    options = (jobspec["attributes"]["system"].get("shell") or {}).get("options") or {}
    pty = options.get("pty")
    return isinstance(pty, dict) and bool(pty.get("interactive"))


def may_run_again(jobspec: Mapping[str, Any] | None, on_stop: str) -> bool:
    """Return whether a job goes back to the queue: by its own attribute, else by pod.onStop. Raises ValueError."""
    if not jobspec:
        return False
    wish = own_attributes(jobspec).get("requeue")
    if wish is None:
        return on_stop == "requeue" and not is_interactive(jobspec)
    if wish not in (0, 1):  # also false and true
        raise ValueError(f"user.minicluster.requeue is {wish!r}: must be 0 or 1")
    return bool(wish)


def warning(jobspec: Mapping[str, Any]) -> tuple[int, float] | None:
    """Return the signal that a job gets as a warning, and how many seconds before its end. Raises ValueError."""
    wish = own_attributes(jobspec).get("signal")
    if wish is None:
        return None
    name, at, seconds = str(wish).partition("@")
    try:
        known = {each.name: each for each in signal.Signals}
        number = int(name) if name.isdigit() else known.get(name) or known[f"SIG{name}"]
        return signal.Signals(number), parse_fsd(seconds) if at else float("inf")
    except (KeyError, ValueError, OSError):
        raise ValueError(f"user.minicluster.signal is {wish!r}: must be like SIGUSR1 or SIGUSR1@60s") from None


def losses_of(jobspec: Mapping[str, Any] | None) -> int:
    """Return how often a job was put back because it had lost a node."""
    losses = own_attributes(jobspec).get("losses", 0)
    return losses if isinstance(losses, int) else 0


def copy_of(
    jobspec: Mapping[str, Any], original: Mapping[str, Any], job: int, marks: Mapping[str, int], runs: bool
) -> dict[str, Any]:
    """Return the jobspec of a job's copy, which waits for the end of a job that runs.

    ``marks`` are attributes of ours that it has besides; with `losses` the job lost a node.
    Only the original jobspec has the job's environment, and its constraints before frobnicator.py made them ranks.
    """
    attributes = jobspec["attributes"]
    name = JobID(job).f58plain
    # dependencies on other jobs and on times were satisfied before the job started
    kept = [each for each in attributes["system"].get("dependencies") or [] if each["scheme"] == "singleton"]
    if "losses" in marks:
        # Flux ends the job a moment before it takes the node for lost, and may learn late of other nodes that were lost
        # with it; until then it gives them jobs
        seconds = losses_of(jobspec) * LATER_SECONDS or SOON_SECONDS
        kept.append({"scheme": "begin-time", "value": str(time.time() + seconds)})
    if runs:
        kept.append({"scheme": "afternotok", "value": name})
    system = {
        **attributes["system"],
        "environment": original["attributes"]["system"].get("environment") or {},
        "dependencies": kept,
    }
    if "constraints" in original["attributes"]["system"]:
        system["constraints"] = original["attributes"]["system"]["constraints"]
    own = {**own_attributes(jobspec), "continues": name, **marks}
    user = {**(attributes.get("user") or {}), "minicluster": own}
    if "slurm" in user:
        user["slurm"] = again = slurm_again(user["slurm"], job)
        # in the names of its files
        system["shell"], tasks = json.loads(
            json.dumps([system.get("shell") or {}, jobspec["tasks"]]).replace("{{id.dec}}", again["id"])
        )
        jobspec = {**jobspec, "tasks": tasks}
    return {**jobspec, "attributes": {**attributes, "system": system, "user": user}}


def slurm_again(own: Mapping[str, Any], job: int) -> dict[str, Any]:
    """Return the attributes by which Slurm's commands know the copy of a job by that job's id."""
    # as text: Lua's numbers would lose digits
    again = {**own, "id": own.get("id") or str(job), "restarts": own.get("restarts", 0) + 1}
    if "index" in own:
        # the array's first task has its id
        again["array"] = own.get("array") or job
    return again


def lookup(handle: Any, job: int, original: bool = False) -> dict[str, Any] | None:
    """Return the jobspec of a job, None when Flux has none. Raises OSError."""
    answer = job_kvs_lookup(handle, job, keys=["jobspec"], original=original)
    return answer["jobspec"] if answer else None


def waiting_copies(handle: Any) -> Iterator[tuple[str, int]]:
    """Yield the name of each job that runs and has a copy, and the copy. Raises OSError."""
    for job in jobs(handle, "depend", ["dependencies"]):
        if any(each.startswith(AFTER_FAILURE) for each in job.get("dependencies", [])):
            name = own_attributes(lookup(handle, job["id"])).get("continues")
            if name:
                yield name, job["id"]


def continuations(handle: Any, since: float) -> set[str]:
    """Return the names of the jobs that have a copy which has not ended before a time. Raises OSError."""
    catch_up(handle)
    listed = [job["id"] for states in ("active", "inactive") for job in jobs(handle, states, [], since)]
    originals = (own_attributes(lookup(handle, job)).get("continues") for job in listed)
    return {name for name in originals if name}


def resubmit(handle: Any, job: Mapping[str, Any], marks: Mapping[str, int], runs: bool = True) -> int:
    """Submit the copy of a job, as `copy_of` makes it, and return it once it is listed. Raises OSError."""
    jobspec, original = lookup(handle, job["id"]), lookup(handle, job["id"], original=True)
    if not (jobspec and original):
        raise FileNotFoundError("its jobspec is gone")
    again = copy_of(jobspec, original, job["id"], marks, runs)
    copy = int(submit(handle, json.dumps(again), job["urgency"]))
    if "slurm" in again["attributes"]["user"]:
        memo = {"slurm": again["attributes"]["user"]["slurm"]}
        handle.rpc("job-manager.memo", {"id": copy, "volatile": False, "memo": memo}).get()
    # this returns when the copy is listed: the next request must find it
    job_list_id(handle, copy, ["dependencies"]).get_job()
    return copy


def ask_for_copies(handle: Any, wanted: Iterable[int]) -> dict[str, str]:
    """Ask rank 0 to make copies of running jobs; return the copies by job's name. Errors are printed."""
    try:
        copies = _answer(handle, {"jobs": list(wanted)})
    except OSError as error:
        print(f"minicluster: no job is put back into the queue: {error}", flush=True)
        return {}
    for name, text in copies["errors"].items():
        print(f"minicluster: job {name} is not put back into the queue: {text}", flush=True)
    return dict(copies["copies"])


def _answer(handle: Any, request: Mapping[str, Any]) -> Any:
    """Return the service's answer, once it has started. Raises OSError."""
    end = time.monotonic() + SERVICE_SECONDS
    answer = None
    while answer is None:
        answer = _ask(handle, request, last=time.monotonic() >= end)
    return answer


def _ask(handle: Any, request: Mapping[str, Any], last: bool) -> Any:
    """Return the service's answer; None if it has not started yet, unless this is the last try. Raises OSError."""
    try:
        return handle.rpc(TOPIC, request, nodeid=0).get()
    except OSError as error:
        if error.errno != errno.ENOSYS or last:
            raise
        time.sleep(0.1)
        return None


class Requeue:
    """What a leaving pod does with its jobs that may run again: warns them, and asks rank 0 for their copies."""

    def __init__(self, handle: Any, on_stop: str, lost: bool) -> None:
        """With the value of pod.onStop; ``lost``: the queue is lost with this pod, so no copy is made."""
        self.handle, self.on_stop, self.lost = handle, on_stop, lost
        #: By job: whether it may run again, and the signal and time of its warning
        self.known: dict[int, tuple[bool, tuple[int, float] | None]] = {}
        self.warned: set[int] = set()

    def says(self, job: int) -> tuple[bool, tuple[int, float] | None]:
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
        wanted = [job for job in running if self.says(job)[0]]
        return ask_for_copies(self.handle, wanted) if wanted and not self.lost else {}

    def warn(self, running: list[int], left: float) -> None:
        """Send the signals that are due ``left`` seconds before the end, each once. Raises OSError."""
        due = {}
        for job in running:
            first = self.says(job)[1]
            if first and left <= first[1] and job not in self.warned:
                due[job] = signal.Signals(first[0])
        self.put_back(list(due))
        for job, signum in due.items():
            print(f"minicluster: job {JobID(job).f58plain} gets {signum.name}: the pod was told to stop", flush=True)
            self.warned.add(job)
            with suppress(OSError):  # it has just ended
                send(self.handle, job, signum)
