"""In a queue that was kept: cancels the cluster's own work that a previous lead submitted. This lead submits it again.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import flux
from flux.job import cancel, job_kvs_lookup
from state import jobs


def main() -> None:
    """Cancel the active jobs that have the mark of the submit words (``user.minicluster``)."""
    handle = flux.Flux()
    for job in [*jobs(handle, "pending", []), *jobs(handle, "running", [])]:
        found = job_kvs_lookup(handle, job["id"], keys=["jobspec"])
        user = (found or {"jobspec": {}})["jobspec"].get("attributes", {}).get("user") or {}
        if user.get("minicluster") == "work":
            cancel(handle, job["id"], "minicluster: the new lead submits this work again")


if __name__ == "__main__":
    main()
