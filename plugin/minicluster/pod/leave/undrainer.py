"""undrainer.py ON_STOP [kept]: on the lead, undrains the ranks that we drained once their pods are gone.

So a pod that comes back gets jobs at once. Drains of others stay. It also puts the jobs of lost nodes back into the
queue, and in a thread those of leaving pods, if they may run again: all with ON_STOP `requeue`. With a kept queue
(``kept``) it repairs what a kill can leave behind. It says in the
log when Flux's state can't be saved. It ends with the lead's broker.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

import flux
import saved
from changes import Changes, pause_after
from losses import Losses
from offers import undrain
from recovery import recover
from requeue import serve
from state import OWN_REASON, Nodes, parse_idset, unused_nodes

#: Seconds between a look after a change and the next one, because job-list may learn of the change later; doubled each
#: time without a change, up to the period
AGAIN, PERIOD = 1.0, 60.0


def gone_ranks(found: Nodes) -> list[int]:
    """Return the ranks that we drained and that are offline."""
    ours = [rank for rank, reason in found.drained.items() if reason.startswith(OWN_REASON)]
    return [rank for rank in ours if rank not in found.online]


def replaced_ranks(handle: Any) -> list[int]:
    """Return the ranks that we drained under a previous lead, because they left or the agent was scaling down.

    They have new pods: a broker ends with its lead, and a pod that was told to stop does not start again.
    """
    begin = float(handle.attr_get("broker.starttime"))
    drains = handle.rpc("resource.status", nodeid=0).get()["drain"].items()
    ours = [(targets, entry["timestamp"]) for targets, entry in drains if entry["reason"].startswith(OWN_REASON)]
    return [rank for targets, drained in ours if drained < begin for rank in parse_idset(targets)]


def fail(args: threading.ExceptHookArgs) -> None:
    """End the program when a thread fails: without its threads it would seem to work."""
    print(args.exc_value, file=sys.stderr, flush=True)
    os._exit(1)


def tell(problem: str, told: str) -> str:
    """Print a problem to the lead's log when it is new, and return it."""
    if problem not in ("", told):
        print(f"minicluster: {problem}", flush=True)
    return problem


def main(on_stop: str, kept: bool) -> None:
    """With a kept queue recover first; then look whenever a rank goes offline, or a job ends. Raises OSError."""
    handle = flux.Flux()
    threading.excepthook = fail
    threading.Thread(target=serve, daemon=True).start()
    if kept:
        undrain(handle, replaced_ranks(handle))
        # in a thread: it may take long
        threading.Thread(target=lambda: recover(flux.Flux()), daemon=True).start()
    changes, losses = Changes(flux.Flux(), ["nodes", "exceptions"]), Losses(handle, on_stop)
    most, told = AGAIN, ""
    while True:
        begin, used = time.monotonic(), time.process_time()
        undrain(handle, gone_ranks(unused_nodes(handle)))
        losses.look()
        told = tell(saved.problem(handle), told)
        changes.wait(pause_after(time.process_time() - used), most)
        most = AGAIN if time.monotonic() < begin + most else min(2 * most, PERIOD)


if __name__ == "__main__":
    try:
        main(sys.argv[1], kept=sys.argv[2:] == ["kept"])
    except OSError as error:
        sys.exit(str(error))
