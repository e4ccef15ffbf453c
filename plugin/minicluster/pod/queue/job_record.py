"""What is kept and reported of a job: one line of JSON.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
import time
from typing import Any, Iterable, Mapping, Sequence

from state import exit_code, parse_idset

#: The attributes of a job that are asked of Flux, and reported under the same names
TIMES = ("t_submit", "t_run", "t_cleanup", "t_inactive")
SAME = (*TIMES, "ntasks", "nnodes", "ncores", "duration", "urgency", "queue")
EXCEPTION = ("exception_occurred", "exception_severity", "exception_type", "exception_note")
#: Flux's numbers of states and results (flux_job_state_t, flux_job_result_t)
STATE_NAMES = {1: "NEW", 2: "DEPEND", 4: "PRIORITY", 8: "SCHED", 16: "RUN", 32: "CLEANUP", 64: "INACTIVE"}
RESULT_NAMES = {1: "COMPLETED", 2: "FAILED", 4: "CANCELED", 8: "TIMEOUT"}
#: The memo in which a job says how far it is (flux-job(1))
PROGRESS_KEY = "progress"
#: The memo of a job with what it has used, and what begins the key of each rank in it
USAGE_KEY, RANK_PREFIX = "minicluster_usage", "rank"
#: The attributes of a job by which `usage` knows it
USAGE_ATTRIBUTES = ["ranks", "nodelist", "annotations"]
REPORT_ATTRIBUTES = ["name", "state", "result", "waitstatus", *EXCEPTION, *SAME, *USAGE_ATTRIBUTES]
#: What is told of each node (usage.lua): bytes, seconds, cores, and threads at most
USAGE_FIELDS = ("memory_peak", "memory_limit", "cpu_seconds", "cores", "threads", "read", "written")
#: The same of GPUs, which a record has only where a job has any
GPU_FIELDS = ("gpus", "gpus_busy", "gpu_memory_peak", "gpu_memory_limit")

#: Fluxion gives a job without a time limit an end in some hundred years
UNLIMITED_SECONDS = 3e8

#: Jobspecs that are asked for at once
BATCH_JOBS = 500


def record(job: Mapping[str, Any], name: str, user: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what is reported of a job; ``name`` is its id as a text. What a job doesn't have is None."""
    status = job.get("waitstatus")
    return {
        "id": name,
        "number": job["id"],
        "name": job.get("name", ""),
        "state": STATE_NAMES.get(job["state"], str(job["state"])),
        "result": RESULT_NAMES.get(job.get("result", 0)),
        "exit_code": None if status is None else exit_code(status),
        "exception": _exception(job),
        "nodes": job.get("nodelist") or None,
        "ranks": job.get("ranks", "").strip("[]") or None,
        # Flux leaves out a time that has not come, or gives 0
        **{key: job.get(key) if key == "urgency" else job.get(key) or None for key in SAME},
        "t_estimate": _estimate(job),
        "progress": progress(annotation(job, "user", PROGRESS_KEY)),
        "usage": usage(job),
        "inner": None,
        "user": user,
    }


def _estimate(job: Mapping[str, Any]) -> Any:
    """Return when Fluxion lets a waiting job start; None if it does not say, or behind a job without a time limit."""
    at = annotation(job, "sched", "t_estimate")
    return at if at and at < time.time() + UNLIMITED_SECONDS else None


def _exception(job: Mapping[str, Any]) -> str | None:
    """Return what ended a job other than its own exit code, as `timeout: NOTE`."""
    occurred, severity, kind, note = (job.get(key) for key in EXCEPTION)
    return ": ".join(filter(None, [kind, note])) if occurred and severity == 0 else None


def annotation(job: Mapping[str, Any], whose: str, key: str) -> Any:
    """Return what the scheduler, `sched`, or a memo, `user`, says of a job that Flux has listed; None for nothing."""
    return ((job.get("annotations") or {}).get(whose) or {}).get(key)


def progress(told: Any) -> float | None:
    """Return how much of its work a job says that it has done, from 0 to 1; None if it does not."""
    is_number = isinstance(told, (int, float)) and not isinstance(told, bool)
    return float(told) if is_number and 0 <= told <= 1 else None


def usage(job: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a job has used by its hosts and in total, by what Flux lists of it; None if nothing is known.

    What one node does not tell is unknown in total, too.
    """
    told = annotation(job, "user", USAGE_KEY)
    if not isinstance(told, dict):
        return None
    has_gpus = any(isinstance(each, dict) and "gpus" in each for each in told.values())
    fields = USAGE_FIELDS + (GPU_FIELDS if has_gpus else ())
    nodes = {host: _of_node(told.get(f"{RANK_PREFIX}{rank}"), fields) for rank, host in _hosts(job)}
    total = {field: _sum([used[field] for used in nodes.values()]) for field in fields}
    return {"nodes": nodes, "total": total}


def _hosts(job: Mapping[str, Any]) -> Iterable[tuple[int, str]]:
    """Return the ranks and the hosts of a job."""
    from flux.hostlist import Hostlist

    return zip(parse_idset(job["ranks"]), map(str, Hostlist(job["nodelist"])))


def _of_node(told: Any, fields: Iterable[str]) -> dict[str, float | None]:
    # anybody can write a memo
    values = told if isinstance(told, dict) else {}
    numbers = {field: values.get(field) for field in fields}
    known = {field: value if type(value) in (int, float) else None for field, value in numbers.items()}
    # without a limit it is 0
    return {**known, "memory_limit": known["memory_limit"] or None}


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known), 2) if len(known) == len(values) else None


def line(job: Mapping[str, Any], user: Mapping[str, Any] | None) -> str:
    """Return the line about a job."""
    from flux.job import JobID

    return json.dumps(record(job, JobID(job["id"]).f58plain, user)) + "\n"


def user_attributes(handle: Any, ids: Sequence[int], seconds: float) -> dict[int, Mapping[str, Any]]:
    """Return the user's attributes of jobs, as many as can be looked up in some seconds. Raises OSError.

    A look-up costs the broker 1 ms.
    """
    from flux.job import JobKVSLookup

    end = time.monotonic() + seconds
    by_job: dict[int, Mapping[str, Any]] = {}
    for first in range(0, len(ids), BATCH_JOBS):
        if time.monotonic() > end:
            break
        for job in JobKVSLookup(handle, list(ids[first : first + BATCH_JOBS]), keys=["jobspec"]).data():
            by_job[job["id"]] = user_of(job["jobspec"])
    return by_job


def user_of(jobspec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the user's attributes in a jobspec."""
    user: Mapping[str, Any] = jobspec["attributes"].get("user") or {}
    return user


#: Jobs among which copies are looked for, each of which costs the broker 1 ms, and the most seconds for that
COPY_JOBS, LOOKUP_COPIES_SECONDS = 200, 5.0


def copies_after(handle: Any, job: int) -> dict[str, int]:
    """Return the jobs after one that run others again, by the names of these. Raises OSError."""
    from state import jobs

    later = {each["id"] for states in ("active", "inactive") for each in jobs(handle, states, []) if each["id"] > job}
    copies = {}
    for number, user in user_attributes(handle, sorted(later)[:COPY_JOBS], LOOKUP_COPIES_SECONDS).items():
        own = user.get("minicluster")
        if isinstance(own, dict) and own.get("continues"):
            copies[str(own["continues"])] = number
    return copies
