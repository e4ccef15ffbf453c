"""ending.py ON_STOP RANKS: the jobs that run on nodes which are about to go, and how many jobs wait; nothing changes.

RANKS is an idset, "" for all. ON_STOP is what happens to a job that says nothing itself: cancel, or requeue. Prints a
JSON object: the jobs that are ``running``, how many ``more`` there are, and how many are ``waiting``.
Sent with offers.py, state.py and requeue.py; runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Mapping

import flux
from flux.job import JobID
from requeue import lookup, may_run_again, own_attributes
from state import job_counts, jobs, parse_idset

#: The most jobs that are described: the jobspec of each is read
DESCRIBED_JOBS = 20
#: States of jobs that wait
PENDING = ("depend", "priority", "sched")


def described(handle: Any, job: Mapping[str, Any], on_stop: str) -> dict[str, Any]:
    """Return a job that runs, and whether it goes back to the queue. Raises OSError."""
    jobspec = lookup(handle, job["id"])
    try:
        again = may_run_again(jobspec, on_stop)
    except ValueError:  # a wish that can't be read
        again = False
    return {
        "id": JobID(job["id"]).f58plain,
        "name": job.get("name", ""),
        "nodes": job.get("nodelist", ""),
        "again": again,
        "is_work": bool(own_attributes(jobspec).get("work")),
    }


def main(on_stop: str, ranks: str) -> dict[str, Any]:
    """Return what is printed. Raises OSError."""
    handle = flux.Flux()
    wanted = set(parse_idset(ranks))
    answer = [
        job
        for job in jobs(handle, "running", ["name", "ranks", "nodelist"])
        if not wanted or wanted & set(parse_idset(job.get("ranks", "")))
    ]
    counts = job_counts(handle)
    return {
        "running": [described(handle, job, on_stop) for job in answer[:DESCRIBED_JOBS]],
        "more": max(0, len(answer) - DESCRIBED_JOBS),
        "waiting": sum(counts.get(state, 0) for state in PENDING),
    }


if __name__ == "__main__":
    try:
        print(json.dumps(main(*sys.argv[1:])))
    except OSError as error:
        sys.exit(str(error))
