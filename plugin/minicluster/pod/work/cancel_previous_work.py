"""Cancels the cluster's own work that a previous lead submitted to a kept queue. This lead submits it again.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import flux
from flux.job import cancel
from requeue import lookup, own_attributes
from state import jobs


def main() -> None:
    """Cancel the active jobs that have the mark of the submit words (``user.minicluster.work``)."""
    handle = flux.Flux()
    for job in [*jobs(handle, "pending", []), *jobs(handle, "running", [])]:
        if own_attributes(lookup(handle, job["id"])).get("work"):
            cancel(handle, job["id"], "minicluster: the new lead submits this work again")


if __name__ == "__main__":
    main()
