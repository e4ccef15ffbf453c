"""On the lead: undrains the ranks that we drained once they are gone, so that who comes back takes jobs at once.

What others drained stays so. The first pod that leaves starts it; where the queue is kept, the lead does, and it
then first puts right what a kill can leave behind. It ends with the lead's broker.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import flux
from flux.resource.journal import ResourceJournalConsumer
from leave import REASON
from recovery import recover
from state import OURS, ids, idset, nodes


def gone(found: Any) -> list[int]:
    """Return the ranks that we drained and that are no longer there."""
    return [rank for rank, reason in found.drained.items() if reason.startswith(OURS) and rank not in found.online]


def stale(handle: Any) -> list[int]:
    """Return the ranks of pods that were told to stop under an earlier lead.

    A broker ends with its lead, and one that was told to stop does not start again: who has the rank now is new.
    """
    begin = float(handle.attr_get("broker.starttime"))
    drains = handle.rpc("resource.status", nodeid=0).get()["drain"].items()
    found = [targets for targets, entry in drains if entry["reason"] == REASON and entry["timestamp"] < begin]
    return [rank for targets in found for rank in ids(targets)]


def undrain(handle: Any, ranks: list[int]) -> None:
    """Let ranks take jobs again."""
    if ranks:
        handle.rpc("resource.undrain", {"targets": idset(ranks), "mode": "update"}, nodeid=0).get()


def main(kept: bool) -> None:
    """Recover where the queue is kept, then undrain at each change of what is there."""
    handle = flux.Flux()
    if kept:
        undrain(handle, stale(handle))
        recover(handle)
    journal = ResourceJournalConsumer(flux.Flux(), include_sentinel=True).start()
    while True:
        event = journal.poll()
        # the sentinel comes once what happened before has been told
        if event is not None and (event.is_empty() or event.name == "offline"):
            undrain(handle, gone(nodes(handle)))


if __name__ == "__main__":
    # the end of the broker ends the journal
    with suppress(OSError):
        main(kept=sys.argv[1:] == ["kept"])
