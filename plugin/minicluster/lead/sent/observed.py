"""What Flux's events say of jobs and nodes, as changes of their records.

A module of observe.py: runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import base64
import json
import os
from collections import deque
from itertools import islice
from typing import Any, Iterable, Iterator, Mapping

from flux.job import JobID
from history import History, folder
from inner_jobs import INNER_JOBS, answers, lines_inside, lost, question, told_inside, uri_of
from job_record import PROGRESS_KEY, REPORT_ATTRIBUTES, progress, record
from state import exit_code
from used_now import Looks

#: The state of a job after an event (RFC 21); what it waits for at first is not told apart
STATES = {"submit": "SCHED", "alloc": "RUN", "finish": "CLEANUP"}
#: Characters of a command, and events of nodes, that are told at most
COMMAND_CHARACTERS, NODE_RECORDS = 400, 2000


def told(job: Mapping[str, Any], user: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the record of a job that Flux has listed, with the user's attributes."""
    return record(job, JobID(job["id"]).f58plain, user)


def past(handle: Any, most: int) -> Iterator[dict[str, Any]]:
    """Yield the records of the last jobs that have ended, then of the others. Raises OSError."""
    from state import jobs

    # in this order: a job that ends between the requests is in both
    active, inactive = (jobs(handle, state, REPORT_ATTRIBUTES) for state in ("active", "inactive"))
    listed = {job["id"] for job in inactive}
    count, recorded = 0, {}
    inside: deque[str] = deque(maxlen=most)
    for number, text in History(folder()):
        if number in listed:
            # a look-up of its attributes costs more
            recorded[number] = json.loads(text)
        elif number is None:  # one inside of another
            inside.append(text)
        else:
            count += 1
    yield from map(json.loads, inside)
    older = (json.loads(text) for number, text in History(folder()) if number not in listed and number is not None)
    yield from islice(older, max(0, count + len(listed) - most), None)
    ended = sorted(inactive, key=lambda job: float(job["t_inactive"]))[-most:]
    for job in ended + [job for job in active if job["id"] not in listed]:
        known = recorded.get(job["id"], {})
        yield {**told(job, known.get("user")), "inner": known.get("inner"), "uri": uri_of(job)}


class InnerLooks(Looks):
    """Looks at the jobs inside of those that are instances of Flux."""

    pause_factor = 100

    def __init__(self, handle: Any, reply: Any) -> None:
        super().__init__(handle, reply)
        self.jobs: dict[int, dict[str, Any]] = {}  #: that are instances and have not ended, as Flux lists them
        self.known: dict[str, Mapping[str, Any]] = {}  #: what was told, by id

    def see(self, jobs: Iterable[Mapping[str, Any]]) -> None:
        """Take jobs, or what has changed of them."""
        for job in jobs:
            number = job["number"]
            if job.get("uri") and job.get("state") != "INACTIVE":
                self.jobs[number] = {"id": number, "annotations": {"user": {"uri": job["uri"]}}}
            if number in self.jobs and job.get("ranks"):
                self.jobs[number]["ranks"] = job["ranks"]
            if number in self.jobs and job.get("state") == "INACTIVE":
                self._ended(self.jobs.pop(number), job["t_inactive"])

    def asked(self) -> list[str]:
        """Return the words that ask the instances."""
        return question(self.jobs.values(), INNER_JOBS)

    def told(self, text: str) -> None:
        """Tell what is new, also of instances in them that have ended."""
        said, before = answers(text), told_inside(self.handle, self.jobs.values())
        for number in said.keys() & self.jobs.keys():
            self._tell(number, before.get(number, "") + said[number])

    def _tell(self, number: int, text: str, end: float | None = None) -> None:
        counts, lines = lines_inside(number, text, end)
        rows = {row["id"]: row for row in map(json.loads, lines)}
        new = [row for name, row in rows.items() if self.known.get(name) != row]
        self.known.update(rows)
        self.reply(jobs=[{"number": number, "inner": counts}, *new])

    def _ended(self, job: Mapping[str, Any], end: float) -> None:
        number = job["id"]
        self._tell(number, told_inside(self.handle, [job]).get(number, ""), end)
        path = f"{JobID(number).f58plain}/"
        rows = [row for name, row in self.known.items() if name.startswith(path)]
        self.known = {name: row for name, row in self.known.items() if not name.startswith(path)}
        self.reply(jobs=[lost(row, end) for row in rows if row["state"] != "INACTIVE"])


def described(jobspec: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a jobspec says of a job: its name, command and attributes."""
    task = jobspec["tasks"][0]
    command = [str(word) for word in task["command"]]
    name = jobspec["attributes"].get("system", {}).get("job", {}).get("name")
    words = " ".join(command)
    return {
        "name": name or os.path.basename(command[0]),  # noqa: PTH119 - a text
        "command": words if len(words) <= COMMAND_CHARACTERS else f"{words[:COMMAND_CHARACTERS]}…",
        "user": jobspec["attributes"].get("user"),
    }


def placed(resources: Mapping[str, Any]) -> dict[str, Any]:
    """Return where a job runs, by its resource set (RFC 20)."""
    from state import by_rank, to_idset

    cores = by_rank(resources)
    nodes = ",".join(resources["execution"].get("nodelist") or ())
    return {"ranks": to_idset(cores), "nodes": nodes, "ncores": sum(number for number, _ in cores.values())}


def change_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an event changes in a job's record."""
    name, when, context = event["name"], event["timestamp"], event.get("context", {})
    change: dict[str, Any] = {"state": STATES[name]} if name in STATES else {}
    if name == "submit":
        change.update(t_submit=when, urgency=context.get("urgency"))
    elif name == "urgency":
        change["urgency"] = context.get("urgency")
    elif name == "alloc":
        change["t_run"] = when
    elif name == "finish":
        change.update(t_cleanup=when, exit_code=exit_code(context["status"]))
    elif name == "exception" and context.get("severity") == 0:
        change["exception"] = ": ".join(filter(None, [context["type"], context.get("note")]))
    elif name == "memo":
        change.update({"progress": progress(context[PROGRESS_KEY])} if PROGRESS_KEY in context else {})
        change.update({"uri": context["uri"]} if "uri" in context else {})
    elif name == "clean":
        change.update(state="INACTIVE", t_inactive=when)
    return change


def of_nodes(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return ranks and reason of an event of nodes."""
    ranks = str(context.get("idset", context.get("ranks", ""))).strip("[]")
    change: dict[str, Any] = {"ranks": ranks}
    if context.get("reason"):
        change["reason"] = str(context["reason"])
    return change


def hosts_of(resources: Mapping[str, Any] | None) -> list[str]:
    """Return the hostlists of a resource set, in the order of its ranks."""
    execution = (resources or {}).get("execution", {})
    return [str(each) for each in execution.get("nodelist") or ()]


def cores_of(resources: Mapping[str, Any]) -> dict[str, int]:
    """Return how many cores nodes have, by the idsets of their ranks."""
    from state import by_rank, to_idset

    ranks: dict[int, list[int]] = {}
    for rank, (cores, _) in by_rank(resources).items():
        ranks.setdefault(cores, []).append(rank)
    return {to_idset(those): cores for cores, those in ranks.items()}


def earlier_nodes(handle: Any) -> list[dict[str, Any]]:
    """Return the events of nodes before the lead's last start, whose journal begins anew."""
    wanted = {"namespace": "primary", "key": "resource.eventlog", "flags": 0}
    try:
        text = base64.b64decode(handle.rpc("kvs.lookup", wanted).get()["val"]["data"]).decode(errors="replace")
    except (OSError, KeyError, ValueError):
        return []
    events = [json.loads(line) for line in text.split("\n") if line]
    # with each start Flux defines the resources anew
    starts = [number for number, event in enumerate(events) if event["name"] == "resource-define"]
    names = {"resource-define": "restart", "drain": "drain", "undrain": "undrain"}
    return [
        {"t": event["timestamp"], "event": names[event["name"]], **of_nodes(event.get("context", {}))}
        for event in events[: starts[-1] if starts else None][-NODE_RECORDS:]
        if event["name"] in names
    ]
