"""What is kept and reported of a job: one line of JSON.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
import time
from typing import Any, Mapping, Sequence

from state import exit_code

#: The attributes of a job that are asked of Flux, and reported under the same names
TIMES = ("t_submit", "t_run", "t_cleanup", "t_inactive")
SAME = (*TIMES, "ntasks", "urgency", "queue")
EXCEPTION = ("exception_occurred", "exception_severity", "exception_type", "exception_note")
REPORT_ATTRIBUTES = ["name", "nodelist", "ranks", "state", "result", "waitstatus", *EXCEPTION, *SAME]
#: Flux's numbers of states and results (flux_job_state_t, flux_job_result_t)
STATE_NAMES = {1: "NEW", 2: "DEPEND", 4: "PRIORITY", 8: "SCHED", 16: "RUN", 32: "CLEANUP", 64: "INACTIVE"}
RESULT_NAMES = {1: "COMPLETED", 2: "FAILED", 4: "CANCELED", 8: "TIMEOUT"}
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
        "user": user,
    }


def _exception(job: Mapping[str, Any]) -> str | None:
    """Return what ended a job other than its own exit code, as `timeout: NOTE`."""
    occurred, severity, kind, note = (job.get(key) for key in EXCEPTION)
    return ": ".join(filter(None, [kind, note])) if occurred and severity == 0 else None


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
