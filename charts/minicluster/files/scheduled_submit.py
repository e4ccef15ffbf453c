"""scheduled_submit.py RUN: on the lead, submits a run of a schedule, unless that was done before.

RUN is JSON: `schedule`, `key` (the same for all tries of a run), `due` (seconds since the epoch), `options` of
`flux submit`, and `command`. The jobspec has the key, and so has the KVS, where it outlives the record of the job.
Exits with 2 for a job that flux refuses. Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping

import flux
import flux.kvs
from flux.job import JobID, JobList, job_kvs_lookup


def submitted(handle: Any, run: Mapping[str, Any], place: str, mark: str) -> str:
    """Return the job of a run, "" if there is none. Raises OSError."""
    try:
        last = flux.kvs.get(handle, place)
        if last["key"] == run["key"]:
            return str(last["job"])
    except FileNotFoundError:
        pass  # the first run
    for states, since in (("active", 0), ("inactive", run["due"])):
        for job in JobList(handle, filters=[states], user="all", max_entries=0, since=since).jobs():
            jobspec = (job_kvs_lookup(handle, job.id, keys=["jobspec"]) or {}).get("jobspec") or {}
            user = (jobspec.get("attributes") or {}).get("user") or {}
            if (user.get("minicluster") or {}).get("schedule") == mark:
                return str(JobID(job.id).f58plain)
    return ""


def submit(handle: Any, run: Mapping[str, Any], mark: str) -> str:
    """Submit a run, and return its job, or its jobs. Exits with 2 if flux refuses it. Raises OSError."""
    own = [f"--job-name={run['schedule']}", *run["options"], f"--setattr=user.minicluster.schedule={json.dumps(mark)}"]
    # no "--": Flux before 0.66 takes it for the command
    words = [f"{os.environ['MINICLUSTER_HOME']}/bin/flux", "submit", *own, *run["command"]]
    done = subprocess.run(words, check=False, stdout=subprocess.PIPE)
    if done.returncode:
        # a broker that ends takes no jobs: another try may find the next one
        sys.exit(2 if handle.rpc("state-machine.get").get()["state"] == "run" else 1)
    return " ".join(str(JobID(job).f58plain) for job in done.stdout.decode().split())


def main() -> None:
    """Submit a run once. Raises OSError."""
    run, handle = json.loads(sys.argv[1]), flux.Flux()
    place, mark = f"minicluster.schedules.{run['schedule']}", f"{run['schedule']} {run['key']}"
    # a pod that was lost, and the one that replaces it, may both be here
    with Path(handle.attr_get("rundir"), "schedules.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        job, said = submitted(handle, run, place, mark), "was submitted before"
        if not job:
            job, said = submit(handle, run, mark), "submitted"
        print(f"job {job} {said}", flush=True)
        flux.kvs.put(handle, place, {"key": run["key"], "job": job})
        flux.kvs.commit(handle)


if __name__ == "__main__":
    main()
