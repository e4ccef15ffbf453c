"""follow.py CODE: on the lead, waits for the copies of the cluster's own work that leaving pods put into the queue.

Prints their output, and ends with the exit code of the whole work. Without a copy that is CODE, with which the work
ended. Otherwise it is the largest exit code of its jobs that have no copy.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any, Iterator

import flux
from flux.job import JobID
from requeue import lookup, own_attributes
from state import exit_code, jobs

#: How the jobs of the work can have ended, as filters of a query
RESULTS = ("completed", "failed", "canceled", "timeout")


def own_work(handle: Any, states: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the jobs of this lead's work in some states, and the name of the job that each continues, or ""."""
    begin = float(handle.attr_get("broker.starttime"))
    for job in jobs(handle, states, ["t_submit", "waitstatus", "exception_type"]):
        own = own_attributes(lookup(handle, job["id"])) if job["t_submit"] >= begin else {}
        if own.get("work"):
            yield job, own.get("continues", "")


def result(handle: Any, code: int) -> int:
    """Return the exit code of the work. Raises OSError."""
    ended = [pair for states in RESULTS for pair in own_work(handle, states)]
    continued = {name for _, name in ended if name}
    if not continued:
        return code
    # not the copies that Flux ended because their job succeeded after all
    found = [job for job, _ in ended if job.get("exception_type") != "dependency"]
    last = [job for job in found if JobID(job["id"]).f58plain not in continued]
    # one that never started failed with 1
    return max((exit_code(job.get("waitstatus", 1 << 8)) for job in last), default=0)


def main(code: int) -> int:
    """Show the output of each copy until none is left, and return the exit code of the work. Raises OSError."""
    handle = flux.Flux()
    shown: set[int] = set()
    while True:
        found = [job["id"] for job, name in own_work(handle, "active") if name and job["id"] not in shown]
        if not found:
            return result(handle, code)
        name = JobID(found[0]).f58plain
        print(f"minicluster: the work goes on as job {name}", file=sys.stderr, flush=True)
        subprocess.run(["flux", "job", "attach", name], check=False)
        shown.add(found[0])


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
