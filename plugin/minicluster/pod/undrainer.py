"""undrainer.py [kept]: on the lead, undrains the ranks that we drained once their pods are gone.

So a pod that comes back gets jobs at once. Drains of others stay. Meanwhile a thread puts the jobs of leaving pods back
into the queue. job.sh starts it when the first pod leaves. Where the queue was kept (``kept``) it starts with the lead,
and first repairs what a kill can leave behind. It ends with the lead's broker.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from typing import Any

import flux
from drains import undrain
from flux.resource.journal import ResourceJournalConsumer
from recovery import recover
from requeue import serve
from state import OWN_REASON, Nodes, nodes, parse_idset


def gone_ranks(found: Nodes) -> list[int]:
    """Return the ranks that we drained and that are offline."""
    ours = [rank for rank, reason in found.drained.items() if reason.startswith(OWN_REASON)]
    return [rank for rank in ours if rank not in found.online]


def replaced_ranks(handle: Any) -> list[int]:
    """Return the ranks that we drained under a previous lead: pods were told to stop, or the agent was scaling down.

    Their pods are new ones: a broker ends with its lead, and one that was told to stop does not start again.
    """
    begin = float(handle.attr_get("broker.starttime"))
    drains = handle.rpc("resource.status", nodeid=0).get()["drain"].items()
    ours = [(targets, entry["timestamp"]) for targets, entry in drains if entry["reason"].startswith(OWN_REASON)]
    return [rank for targets, drained in ours if drained < begin for rank in parse_idset(targets)]


def main(kept: bool) -> None:
    """Recover where the queue was kept, then undrain whenever a rank goes offline."""
    handle = flux.Flux()
    threading.Thread(target=serve, daemon=True).start()
    if kept:
        undrain(handle, replaced_ranks(handle))
        recover(handle)
    journal = ResourceJournalConsumer(flux.Flux(), include_sentinel=True).start()
    while True:
        event = journal.poll()
        # the sentinel follows the events of the past
        if event is not None and (event.is_empty() or event.name == "offline"):
            undrain(handle, gone_ranks(nodes(handle)))


if __name__ == "__main__":
    # the journal ends with the broker
    with suppress(OSError):
        main(kept=sys.argv[1:] == ["kept"])
