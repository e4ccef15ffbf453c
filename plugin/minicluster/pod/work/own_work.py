"""own_work.py cancel | own_work.py follow CODE: on the lead, what becomes of the cluster's own work that runs again.

``cancel`` cancels what a previous lead submitted to a kept queue: this lead submits it again. ``follow`` waits for the
copies of this lead's work that were put into the queue, prints their output, and ends with the exit code of the whole
work. Without a copy that is CODE, with which the work ended. Otherwise it is the largest exit code of its jobs that
have no copy.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any, Iterator

import flux
from flux.job import JobID, cancel
from losses import PUT_BACK_TIMES, has_lost_node
from requeue import lookup, losses_of, own_attributes
from state import exit_code, jobs

#: Seconds in which a job that lost a node has its copy (losses.py), and between two looks
COPY_SECONDS, COPY_POLL_SECONDS = 15.0, 0.2
#: How the jobs of the work can have ended, as filters of a query
RESULT_WORDS = ("completed", "failed", "canceled", "timeout")


def cancel_previous(handle: Any) -> None:
    """Cancel the active jobs that have the mark of the submit words (``user.minicluster.work``). Raises OSError."""
    for job in [*jobs(handle, "pending", []), *jobs(handle, "running", [])]:
        if own_attributes(lookup(handle, job["id"])).get("work"):
            cancel(handle, job["id"], "minicluster: the new lead submits this work again")


def own_work(handle: Any, states: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the jobs of this lead's work in some states, and the name of the job that each continues, or ""."""
    begin = float(handle.attr_get("broker.starttime"))
    for job in jobs(handle, states, ["t_submit", "waitstatus", "exception_type", "exception_note"]):
        own = own_attributes(lookup(handle, job["id"])) if job["t_submit"] >= begin else {}
        if own.get("work"):
            yield job, own.get("continues", "")


def result(handle: Any, code: int) -> int:
    """Return the exit code of the work. Raises OSError."""
    ended = [pair for states in RESULT_WORDS for pair in own_work(handle, states)]
    continued = {name for _, name in ended if name}
    if not continued:
        return code
    # not the copies that Flux ended because their job succeeded after all
    works = [job for job, _ in ended if job.get("exception_type") != "dependency"]
    last = [job for job in works if JobID(job["id"]).f58plain not in continued]
    # one that never started failed with 1
    return max((exit_code(job.get("waitstatus", 1 << 8)) for job in last), default=0)


def is_awaited(handle: Any) -> bool:
    """Say whether a job of the work has lost a node, and its copy is not in the queue yet. Raises OSError."""
    work = [pair for states in ("failed", "active") for pair in own_work(handle, states)]
    continued = {name for _, name in work}
    lost = [job for job, _ in work if has_lost_node(job) and JobID(job["id"]).f58plain not in continued]
    return any(losses_of(lookup(handle, job["id"])) < PUT_BACK_TIMES for job in lost)


def follow(handle: Any, code: int) -> int:
    """Show the output of each copy until none is left, and return the exit code of the work. Raises OSError."""
    shown: set[int] = set()
    end = time.monotonic() + COPY_SECONDS
    while True:
        new = [job["id"] for job, name in own_work(handle, "active") if name and job["id"] not in shown]
        if not new and time.monotonic() < end and is_awaited(handle):
            time.sleep(COPY_POLL_SECONDS)
            continue
        if not new:
            return result(handle, code)
        name = JobID(new[0]).f58plain
        print(f"minicluster: the work goes on as job {name}", file=sys.stderr, flush=True)
        subprocess.run(["flux", "job", "attach", name], check=False)
        shown.add(new[0])
        end = time.monotonic() + COPY_SECONDS


if __name__ == "__main__":
    verb, *code_of_work = sys.argv[1:]
    if verb == "cancel":
        cancel_previous(flux.Flux())
    else:
        sys.exit(follow(flux.Flux(), int(code_of_work[0])))
