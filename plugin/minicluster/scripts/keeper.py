"""On the lead: undrains the ranks that we drained once they are gone, so that who comes back takes jobs at once.

What others drained stays so. The first pod that leaves starts it; where the queue is kept, the lead does, and it
then first puts right what a kill can leave behind. It ends with the lead's broker.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

import flux
import flux.kvs
from flux.job import JobID, cancel
from flux.resource.journal import ResourceJournalConsumer
from state import OURS, idset, jobs, nodes

#: What Flux says when its scheduler gave up, and for how many seconds after the start that is looked at
OFFLINE = "Scheduler is offline"
LOOK = 15.0
NOTE = "minicluster: the lead was killed while Flux gave this job its nodes: submit it again"


def gave_up(handle: Any) -> bool:
    """Say whether the scheduler is there and yet has stopped."""
    try:
        status = handle.rpc("job-manager.queue-status", {}, nodeid=0).get()
    except OSError:  # named queues: there is no one status
        return False
    return OFFLINE in str(status.get("stop_reason", ""))


def recover(handle: Any) -> None:
    """Let the scheduler go on when it stumbles over a job that has resources in the KVS and no word of it.

    Flux writes the two one after the other; a kill between them leaves a job that Flux 0.88 refuses to schedule
    ("already allocated"), and with it all others. It can only be cancelled.
    """
    end = time.monotonic() + LOOK
    while time.monotonic() < end:
        if gave_up(handle):
            for job in jobs(handle, "sched", []):
                if flux.kvs.exists(handle, f"{JobID(job['id']).kvs}.R"):
                    cancel(handle, job["id"], NOTE)
            for module in ("sched-simple", "sched-fluxion-qmanager"):
                subprocess.run(["flux", "module", "reload", module], capture_output=True, check=False)
        time.sleep(1)


def gone(found: Any) -> list[int]:
    """Return the ranks that we drained and that are no longer there."""
    return [rank for rank, reason in found.drained.items() if reason.startswith(OURS) and rank not in found.online]


def main(kept: bool) -> None:
    """Recover where the queue is kept, then undrain at each change of what is there."""
    handle = flux.Flux()
    if kept:
        recover(handle)
    journal = ResourceJournalConsumer(flux.Flux(), include_sentinel=True).start()
    while True:
        event = journal.poll()
        # the sentinel comes once what happened before has been told
        if event is not None and (event.is_empty() or event.name == "offline"):
            ranks = gone(nodes(handle))
            if ranks:
                handle.rpc("resource.undrain", {"targets": idset(ranks), "mode": "update"}, nodeid=0).get()


if __name__ == "__main__":
    # the end of the broker ends the journal
    with suppress(OSError):
        main(kept=sys.argv[1:] == ["kept"])
