"""Finds the jobs that run others again (requeue.py).

A module of remote.py and explain.py: runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

from typing import Any

from job_record import user_attributes

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
