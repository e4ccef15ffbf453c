"""Why each waiting job waits; as a program it prints that with the summary of the pod's own state.py, as JSON.

lead/question.py sends it to the lead, and lead/program.py does as a module of remote.py. It uses the programs of the
lead's pod. Runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, Iterable, Mapping

if TYPE_CHECKING:
    from need import Request
    from state import Nodes

sys.path.insert(0, os.path.join(os.environ.get("MINICLUSTER_HOME", ""), "minicluster"))  # noqa: PTH118 - a text

#: The most jobs that are looked at, from the first in the queue
MOST = 200
ATTRIBUTES = ["priority", "urgency", "dependencies", "annotations", "queue"]


def queue_problem(handle: Any, name: str = "") -> str:
    """Return why a queue starts no jobs, "" where it does."""
    try:
        found = handle.rpc("job-manager.queue-status", {"name": name} if name else {}, nodeid=0).get()
    except OSError:
        return ""  # all jobs are in queues with names
    stopped = found.get("stop_reason", "")
    if found.get("start", not stopped):
        return ""
    return "the queue is stopped" + (f" ({stopped})" if stopped else "")


def reasons(handle: Any, ids: Iterable[int] | None = None) -> dict[int, str]:
    """Return why jobs wait, by their ids: the first in the queue, or those of ``ids``.

    Raises OSError; ImportError if the pod lacks our programs.
    """
    from state import jobs, nodes

    wanted = None if ids is None else set(ids)
    found = [
        {**job, "state": state}
        for state in ("depend", "priority", "sched")
        for job in jobs(handle, state, ATTRIBUTES)
        if wanted is None or job["id"] in wanted
    ]
    first = sorted(found, key=lambda job: -job.get("priority", 0))[:MOST]
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
    from need import parse_resources

    jobspec = (job_kvs_lookup(handle, job["id"], keys=["jobspec"]) or {}).get("jobspec")
    if not jobspec:
        return queue
    why, is_final = of_request(parse_resources(jobspec["resources"]), there)
    if is_final:
        return why
    if queue:
        return queue
    if jobspec["attributes"]["system"].get("constraints"):
        why += ", of those that its constraints allow"
    said = ((job.get("annotations") or {}).get("sched") or {}).get("reason_pending")
    return why + (f" ({said})" if said else "")


def of_request(request: Request, there: Nodes) -> tuple[str, bool]:
    """Return why a job waits for resources, and whether that is final: no node that comes or is freed can change it."""
    from state import subtract

    able = {rank: pair for rank, pair in there.all.items() if _count(request, {rank: pair})}
    asks = f"it asks for {_number(request.chunks, 'node' if request.apart else 'slot')}"
    asks += f" of {_amount(request.cores, request.gpus)}"
    if there.all and not able:
        most = _amount(max(cores for cores, _ in there.all.values()), max(gpus for _, gpus in there.all.values()))
        return f"can never run: {asks}, and no node has more than {most}", True
    if request.chunks > _count(request, able):
        return f"can never run: {asks}, and all nodes have room for {_count(request, able)}", True
    up = {rank: pair for rank, pair in able.items() if rank in there.online and rank not in there.drained}
    if request.chunks > _count(request, up):
        drained = sum(rank in there.drained for rank in able)
        there_are = f"{len(up)} {'is' if len(up) == 1 else 'are'} up"
        return f"waits for nodes: {asks}, and {there_are}" + (f", {drained} drained" if drained else ""), False
    free = {rank: subtract(pair, there.used.get(rank, (0, 0))) for rank, pair in up.items()}
    if request.exclusive:
        free = {rank: pair for rank, pair in free.items() if rank not in there.used}
    is_room = request.chunks <= _count(request, free)
    return ("waits for the scheduler" if is_room else "waits for resources that other jobs have"), False


def _count(request: Request, pairs: Mapping[int, tuple[int, int]]) -> int:
    """Return how many of a request's chunks fit on some nodes, by the cores and GPUs of each."""
    total = 0
    for pair in pairs.values():
        fits = [room // each for room, each in zip(pair, (request.cores, request.gpus)) if each]
        total += min([*fits, 1]) if request.apart or not fits else min(fits)
    return total


def _amount(cores: int, gpus: int) -> str:
    text = _number(cores, "core")
    return f"{text} and {_number(gpus, 'GPU')}" if gpus else text


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def grouped(found: Mapping[int, str]) -> list[dict[str, Any]]:
    """Return ``[{"jobs": ids, "reason": text}]`` of jobs and their reasons."""
    from flux.job import JobID

    groups: dict[str, list[str]] = {}
    for job, reason in found.items():
        groups.setdefault(reason, []).append(str(JobID(job).f58))
    return [{"jobs": ids, "reason": reason} for reason, ids in groups.items()]


if __name__ == "__main__":
    import flux
    import state

    flux_handle = flux.Flux()
    more = {"waiting": grouped(reasons(flux_handle)), "queue_problem": queue_problem(flux_handle)}
    print(json.dumps({**state.summary(flux_handle), **more}))
