"""mine.py KEY AGE stop|cancel|find|taken|waits|broker [JOB]: finds or cancels what a client submitted with a key.

AGE is the number of seconds since the command began. ``stop`` cancels the job if it waits, ``cancel`` also
if it runs. ``find`` ends the command that has submitted it, whose client is gone: it would submit it later, or read on.
``find`` of a JOB, by its id, is one that others have submitted, or the last that runs it again (requeue.py).
``waits`` prints the job's ``id`` and why it ``waits``, "" if it does not.
``taken`` ends the command, too, and prints the ``ids`` of all its jobs, the oldest first.
Prints a JSON object: the job's ``id``, whether it was ``cancelled``, and ``input``, how many bytes of its input it got,
and whether also the end; {} if there is no such job. Of one that Flux has forgotten, the ``id`` and the ``exit_code``
(null if it never ran). If none is found in a queue that began after the command, it is ``lost``.
``broker`` prints whether the lead's broker ``is_new``: whether it began later.
Given to `flux python -c` by found_again.py. Runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Iterator

import flux
from begun import catch_up, is_younger
from flux.job import JobID, JobList, cancel, job_kvs_lookup
from history import History, folder
from job_record import copies_after
from output_events import data_of, events, lookup

#: The user attribute of a job with the key
CLIENT_KEY = "minicluster-client"
#: Where Flux keeps the input (RFC 24)
INPUT_KEY = "guest.input"
WAITING = ("DEPEND", "PRIORITY", "SCHED")
#: The most seconds between the client's clock and the queue's times
CLIENT_CLOCK_SECONDS = 60.0


def find(handle: Any, key: str, age: float, states: list[str]) -> Iterator[Any]:
    """Yield the jobs with a key, the newest first. Raises OSError."""
    listed = JobList(handle, attrs=["state", "t_submit"], filters=states, max_entries=0).jobs()
    jobs = sorted(listed, key=lambda job: -job.id)
    for job in jobs:
        # not by our clock: the lead that took the job may have had another one
        if job.t_submit < jobs[0].t_submit - age:
            return
        answer = job_kvs_lookup(handle, job.id, keys=["jobspec"]) or {}
        if answer.get("jobspec", {}).get("attributes", {}).get("user", {}).get(CLIENT_KEY) == key:
            yield job


def named(handle: Any, name: str, age: float) -> Iterator[Any]:
    """Yield the job with an id, or the last that runs it again, unless the queue is a new one. Raises OSError."""
    if is_younger(handle, age):
        return
    number = int(JobID(name))
    while copy := copies_after(handle, number).get(JobID(number).f58plain):
        number = copy
    yield from JobList(handle, attrs=["state"], ids=[number]).jobs()


def recorded(key: str) -> Iterator[dict[str, Any]]:
    """Yield what the lead's history has of the jobs with a key."""
    for _, job in History(folder()).find(re.compile(re.escape(key))):
        if (job["user"] or {}).get(CLIENT_KEY) == key:
            yield job


def end_command(key: str) -> None:
    """Kill the command that submits with a key, and what it runs: its last part has no key in its words."""
    parents = {}
    killed = set()
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError, ValueError):
            pid = int(path.name)
            parents[pid] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if f"user.{CLIENT_KEY}={key}" in (path / "cmdline").read_bytes().decode(errors="replace"):
                killed.add(pid)
    order = [*outermost_first(killed | {pid for pid, parent in parents.items() if parent in killed}, parents)]
    # the end of a terminal's shell tells the rest to hang up, and flux would pass that on to its job
    for number, pids in ((signal.SIGSTOP, order), (signal.SIGKILL, order[::-1])):
        for pid in pids:
            with suppress(OSError):
                os.kill(pid, number)


def outermost_first(pids: set[int], parents: dict[int, int]) -> Iterator[int]:
    """Yield processes so that none can go on when a part of it is stopped: a shell would run its next command."""
    left = set(pids)
    while left:
        first = {pid for pid in left if parents[pid] not in left}
        yield from first
        left -= first


def input_of(handle: Any, job: int) -> tuple[int, bool]:
    """Return how many bytes of its input a job got, and whether also the end. Raises OSError."""
    count, is_over = 0, False
    with suppress(FileNotFoundError):  # it has not begun
        for event in events(lookup(handle, job, INPUT_KEY)):
            context = event.get("context", {})
            count += sum(len(data) for _, data in data_of(event["name"], context))
            is_over = is_over or bool(context.get("eof"))
    return count, is_over


def missing(handle: Any, age: float) -> dict[str, Any]:
    """Return what is known of a job that is not there. Raises OSError."""
    return {"lost": True} if is_younger(handle, age) else {}


def main(key: str, age: str, action: str, name: str = "") -> dict[str, Any]:
    """Do the action, and return the object to print. Raises OSError."""
    handle = flux.Flux()
    if action == "broker":
        return {"is_new": time.time() - float(handle.attr_get("broker.starttime")) < float(age)}
    states = ["pending", "running"]
    if action in ("find", "taken"):
        end_command(key)
        catch_up(handle)
        states.append("inactive")
    listed = named(handle, name, float(age)) if name else find(handle, key, float(age) + CLIENT_CLOCK_SECONDS, states)
    if action == "taken":
        numbers = {int(job.id) for job in listed} | {int(job["number"]) for job in recorded(key)}
        ids = [str(JobID(number).f58) for number in sorted(numbers)]
        return {"ids": ids} if ids else missing(handle, float(age))
    job = next(listed, None)
    if job is None:
        last = None
        if action == "find":
            last = History(folder()).record(int(JobID(name))) if name else next(recorded(key), None)
        return {"id": last["id"], "exit_code": last["exit_code"]} if last else missing(handle, float(age))
    if action == "waits":
        from described import why

        return {"id": JobID(job.id).f58plain, "waits": why([job.id], handle)[0]}
    is_cancelled = job.state in WAITING if action == "stop" else action == "cancel"
    if is_cancelled:
        try:
            cancel(handle, job.id, "its minicluster command was told to stop")
        except OSError:
            return {}  # it has just ended
    answer = {"id": JobID(job.id).f58plain, "cancelled": is_cancelled}
    return {**answer, "input": input_of(handle, job.id)} if action == "find" else answer


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
