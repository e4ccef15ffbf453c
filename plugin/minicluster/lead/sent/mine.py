"""mine.py KEY AGE stop|cancel|find: finds or cancels the job that `minicluster flux` has submitted with a key.

AGE is the greatest number of seconds since the job was submitted. ``stop`` cancels the job if it waits, ``cancel`` also
if it runs. Prints a JSON object: the job's ``id``, whether it was ``cancelled``, and ``began``, how many seconds ago it
began to run (null before that); {} if there is no such job. Of one that Flux has forgotten, the ``id`` and the
``exit_code`` (null if it never ran).
Given to `flux python -c` by jobs.py. Runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import re
import sys
import time
from typing import Any

import flux
from flux.job import JobID, JobList, cancel, job_kvs_lookup
from history import History, folder

#: The user attribute of a job with the key
CLIENT_KEY = "minicluster-client"
WAITING = ("DEPEND", "PRIORITY", "SCHED")


def find(handle: Any, key: str, age: float, states: list[str]) -> Any:
    """Return the newest job with a key, None without one. Raises OSError."""
    listed = JobList(handle, attrs=["state", "t_submit", "t_run"], filters=states, max_entries=0).jobs()
    for job in sorted(listed, key=lambda job: -job.id):
        if job.t_submit < time.time() - age:
            return None
        found = job_kvs_lookup(handle, job.id, keys=["jobspec"]) or {}
        if found.get("jobspec", {}).get("attributes", {}).get("user", {}).get(CLIENT_KEY) == key:
            return job
    return None


def recorded(key: str) -> dict[str, Any]:
    """Return what the lead's history has of the job with a key, {} without one."""
    for _, job in History(folder()).find(re.compile(re.escape(key))):
        if (job["user"] or {}).get(CLIENT_KEY) == key:
            return {"id": job["id"], "exit_code": job["exit_code"]}
    return {}


def main(key: str, age: str, action: str) -> dict[str, Any]:
    """Do the action, and return the object to print. Raises OSError."""
    handle = flux.Flux()
    job = find(handle, key, float(age), ["pending", "running"] + (["inactive"] if action == "find" else []))
    if job is None:
        return recorded(key) if action == "find" else {}
    is_cancelled = job.state in WAITING if action == "stop" else action == "cancel"
    if is_cancelled:
        try:
            cancel(handle, job.id, "its `minicluster flux` was told to stop")
        except OSError:
            return {}  # it has just ended
    began = time.time() - job.t_run if job.t_run else None
    return {"id": JobID(job.id).f58plain, "cancelled": is_cancelled, "began": began}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
