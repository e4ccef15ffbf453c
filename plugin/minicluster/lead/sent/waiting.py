"""Why each waiting job waits; as a program it prints that, the time and the summary of the pod's state.py, as JSON.

lead/ask.py sends it to the lead, and lead/program.py does as a module of remote.py. It uses the programs of the
lead's pod. Runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Mapping

from pending import Unmet, constraints_of

if TYPE_CHECKING:
    from state import Nodes

#: The programs and settings of the lead's pod
LEAD_FOLDER = os.path.join(os.environ.get("MINICLUSTER_HOME", ""), "minicluster")  # noqa: PTH118 - a text
sys.path.insert(0, LEAD_FOLDER)

#: States of a job that waits
WAITING_STATES = ("depend", "priority", "sched")
#: The most jobs that are looked at, from the first in the queue
WAITING_JOBS = 200
WAITING_ATTRIBUTES = ["priority", "urgency", "dependencies", "annotations", "queue"]


def queue_problem(handle: Any, name: str = "") -> str:
    """Return why a queue starts no jobs, "" where it does."""
    try:
        status = handle.rpc("job-manager.queue-status", {"name": name} if name else {}, nodeid=0).get()
    except OSError:
        return ""  # all jobs are in queues with names
    stopped = status.get("stop_reason", "")
    if status.get("start", not stopped):
        return ""
    return "the queue is stopped" + (f" ({stopped})" if stopped else "")


def queues(handle: Any) -> list[dict[str, Any]]:
    """Return the queues with names: how many of their jobs wait and run, and why it starts none. Raises OSError."""
    known = handle.rpc("job-list.job-stats", {}).get().get("queues") or []
    return [
        {
            "name": each["name"],
            "pending": sum(each["job_states"][state] for state in WAITING_STATES),
            "running": sum(each["job_states"][state] for state in ("run", "cleanup")),
            "problem": queue_problem(handle, each["name"]),
        }
        for each in sorted(known, key=lambda each: str(each["name"]))
    ]


def reasons(handle: Any, ids: Iterable[int] | None = None) -> dict[int, str]:
    """Return why jobs wait, by their ids: the first in the queue, or those of ``ids``.

    Raises OSError; ImportError if the pod lacks our programs.
    """
    from state import jobs, nodes

    wanted = None if ids is None else set(ids)
    lines = [
        {**job, "state": state}
        for state in WAITING_STATES
        for job in jobs(handle, state, WAITING_ATTRIBUTES)
        if wanted is None or job["id"] in wanted
    ]
    first = sorted(lines, key=lambda job: -job.get("priority", 0))[:WAITING_JOBS]
    if not first:
        return {}
    there, queues = nodes(handle), {}
    for name in {job.get("queue", "") for job in first}:
        queues[name] = queue_problem(handle, name)
    return {job["id"]: _reason(handle, job, there, queues[job.get("queue", "")]) for job in first}


def _reason(handle: Any, job: Mapping[str, Any], there: Nodes, queue: str) -> str:
    if job["state"] == "depend":
        return "waits for " + ", ".join(job.get("dependencies") or ["its dependencies"])
    if job.get("urgency") == 0:
        return "is held: `flux job urgency ID 16` releases it"
    if job["state"] == "priority":
        return "waits for its priority"
    return _of_resources(handle, job, there, queue)


def _of_resources(handle: Any, job: Mapping[str, Any], there: Nodes, queue: str) -> str:
    from flux.job import job_kvs_lookup

    jobspec = (job_kvs_lookup(handle, job["id"], keys=["jobspec"]) or {}).get("jobspec")
    if not jobspec:
        return queue
    unmet = unmet_of(handle, jobspec, there)
    why, is_final = unmet.reason()
    if is_final:
        return why
    if queue:
        return queue
    if unmet.is_guess:
        why += ", of those that its constraints allow"
    said = ((job.get("annotations") or {}).get("sched") or {}).get("reason_pending")
    return why + (f" ({said})" if said else "")


def unmet_of(handle: Any, jobspec: Mapping[str, Any], there: Nodes) -> Unmet:
    """Return what a job asks for, beside the nodes that there are. Raises OSError."""
    from need import parse_resources

    return Unmet(parse_resources(jobspec["resources"]), there, constraints_of(handle, jobspec), groups())


def groups() -> dict[str, range]:
    """Return the ranks of the groups by name, "" for the cluster's own; none if the settings are of an older version.

    Those of bursts, which come last, are in none: no size brings them.
    """
    try:
        its = settings()
        first = int(its["max_size"])
        by_rank = {"": range(first)}
        for each in its["groups"]:
            by_rank[each["name"]] = range(first, first + int(each["max_size"]))
            first += int(each["max_size"])
    except (OSError, LookupError, ValueError):
        return {}
    return by_rank


def autoscaled() -> dict[str, int]:
    """Return the most nodes that the agent gives each group, "" for the cluster's own; none of those that it leaves."""
    try:
        its = settings()
        policies = {"": its["policy"], **{each["name"]: each["policy"] for each in its["groups"]}}
        return {name: int(policy["max"]) for name, policy in policies.items() if policy}
    except (OSError, LookupError, ValueError):
        return {}


def settings() -> Any:
    """Return the settings of the lead's pod. Raises OSError, ValueError."""
    return json.loads(Path(LEAD_FOLDER, "agent.json").read_text(encoding="utf-8"))


def grouped(reasons_by_rank: Mapping[int, str]) -> list[dict[str, Any]]:
    """Return ``[{"jobs": ids, "reason": text}]`` of jobs and their reasons."""
    from flux.job import JobID

    same: dict[str, list[str]] = {}
    for job, reason in reasons_by_rank.items():
        same.setdefault(reason, []).append(str(JobID(job).f58))
    return [{"jobs": ids, "reason": reason} for reason, ids in same.items()]


if __name__ == "__main__":
    import flux
    import state

    flux_handle = flux.Flux()
    more = {"now": time.time(), "waiting": grouped(reasons(flux_handle)), "queue_problem": queue_problem(flux_handle)}
    more["queues"] = queues(flux_handle)
    print(json.dumps({**state.summary(flux_handle), **more}))
