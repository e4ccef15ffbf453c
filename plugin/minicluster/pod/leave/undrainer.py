"""undrainer.py ON_STOP kept|lost [AFTER RUN LEAVE]: on the lead, undrains ranks that we drained once their pod is gone.

So a pod that comes back gets jobs at once. Drains of others stay. It undrains nodes that were out until their check
succeeded (check.sh). It also puts the jobs of lost nodes back into the
queue, and in a thread those of leaving pods, if they may run again: all with ON_STOP `requeue`. With a kept queue
(``kept``) it repairs what a kill can leave behind. It says in the
log when Flux's state can't be saved. Another thread keeps the records of jobs that end; with AFTER, RUN and LEAVE, one
more stops marked jobs for others (preemption.py). It ends with the lead's broker.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from functools import cached_property
from pathlib import Path
from typing import Any, Container, Mapping, NoReturn, Sequence

import flux
import saved
from changes import Changes, pause_after
from log import tell
from losses import Losses
from offers import undrain
from put_back import Copies, serve
from recorder import Ends, keep_records
from recovery import recover
from state import CHECK_REASON, MEMORY_REASON, OWN_REASON, parse_idset

#: What a parent says of a child that is not connected (flux-overlay(1))
LOST_STATES = ("offline", "lost")
#: Seconds that a parent has to answer
PARENT_SECONDS = 5.0
#: Seconds between a look after a change and the next one, because job-list may learn of the change later; doubled each
#: time without a change, up to the period
AGAIN_SECONDS, LOOK_SECONDS = 1.0, 60.0
#: Flux tells the time of a drain in whole seconds
EXACT_SECONDS = 1.0
#: The reasons of drains that end with the pod
POD_REASONS = (OWN_REASON, MEMORY_REASON)


class Connections:
    """The tree of brokers, which never changes, and what its inner nodes say; each is asked once.

    A broker is connected before it is online, and until it has ended.
    """

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self._said: dict[int, dict[int, tuple[str, float]]] = {}

    def forget(self) -> None:
        """Ask again from now on."""
        self._said = {}

    @cached_property
    def parents(self) -> dict[int, int]:
        """The parent of each rank but 0. Raises OSError."""
        by_rank: dict[int, int] = {}
        inner = [self.handle.rpc("overlay.topology", {"rank": 0}, nodeid=0).get()]
        for node in inner:
            inner += node.get("children", [])
            by_rank.update((child["rank"], node["rank"]) for child in node.get("children", []))
        return by_rank

    def seconds(self, rank: int) -> float | None:
        """Return for how long a broker has been connected; None if it is not. Raises OSError.

        Of an inner node that is only known to be long: its state changes with those below it.
        """
        parent = self.parents.get(rank)
        if parent is None:  # the lead
            return float("inf")
        if parent and self.seconds(parent) is None:
            return None
        status, since = self._children(parent).get(rank, (LOST_STATES[0], 0.0))
        if status in LOST_STATES:
            return None
        return float("inf") if rank in self.parents.values() else since

    def _children(self, parent: int) -> dict[int, tuple[str, float]]:
        if parent not in self._said:
            answer = self.handle.rpc("overlay.health", nodeid=parent).wait_for(PARENT_SECONDS).get()
            self._said[parent] = {each["rank"]: (each["status"], each["duration"]) for each in answer["children"]}
        return self._said[parent]


def our_drains(status: Mapping[str, Any], reasons: tuple[str, ...] = POD_REASONS) -> dict[int, float]:
    """Return the ranks that we drained for a reason that begins so, and when."""
    ours = [(ranks, each) for ranks, each in status["drain"].items() if each["reason"].startswith(reasons)]
    return {rank: each["timestamp"] for ranks, each in ours for rank in parse_idset(ranks)}


def gone_ranks(drains: Mapping[int, float], online: Container[int], connections: Connections, now: float) -> list[int]:
    """Return the ranks whose brokers have ended since we drained them; some are back. Raises OSError.

    A pod that is told to stop while it joins is drained before it is online. It may still come online and get jobs. One
    whose connection is lost gets jobs too, until Flux's resource module knows: it tells of that by a change.
    """
    connections.forget()
    seconds_gone = {rank: connections.seconds(rank) for rank in drains}
    return [
        rank
        for rank, seconds in seconds_gone.items()
        if (rank not in online if seconds is None else now - seconds > drains[rank] + EXACT_SECONDS)
    ]


def replaced_ranks(handle: Any) -> list[int]:
    """Return the ranks that we drained under a previous lead, because they left, or had no memory, or were to go.

    They have new pods: a broker ends with its lead, and a pod that was told to stop does not start again.
    """
    begin = float(handle.attr_get("broker.starttime"))
    drains = our_drains(handle.rpc("resource.status", nodeid=0).get())
    return [rank for rank, drained in drains.items() if drained < begin]


def look(handle: Any, connections: Connections) -> bool:
    """Undrain the ranks whose brokers are gone, and nodes that have passed their check; say whether more may go.

    Raises OSError.
    """
    status = handle.rpc("resource.status", nodeid=0).get()
    drains, online = our_drains(status), set(parse_idset(status["online"]))
    gone = gone_ranks(drains, online, connections, time.time()) if drains else []
    assert drains.keys() >= {*gone}, "a drain of somebody else would be lifted"
    undrain(handle, [*gone, *(online & our_drains(status, (CHECK_REASON,)).keys())])
    # nothing tells of the end of a broker that was never online
    return not drains.keys() - gone <= online


def fail(args: threading.ExceptHookArgs) -> None:
    """End the program when a thread fails: without its threads it would seem to work."""
    print(args.exc_value, file=sys.stderr, flush=True)
    os._exit(1)


def main(on_stop: str, kept: bool, preemption: Sequence[str], settings: Path) -> None:
    """With a kept queue recover first; then look whenever a node comes or goes, or a job ends. Raises OSError."""
    handle = flux.Flux()
    threading.excepthook = fail
    copies = Copies()
    threading.Thread(target=serve, args=(copies,), daemon=True).start()
    threading.Thread(target=lambda: keep_records(flux.Flux(), Ends(flux.Flux()), copies), daemon=True).start()
    if preemption:
        from preemption import preempt

        threading.Thread(
            target=lambda: preempt(flux.Flux(), Changes(flux.Flux(), ["jobs"]), preemption, settings), daemon=True
        ).start()
    if kept:
        undrain(handle, replaced_ranks(handle))
        # in a thread: it may take long
        threading.Thread(target=lambda: recover(flux.Flux(), copies), daemon=True).start()
    watch(handle, Losses(handle, on_stop, copies), Changes(flux.Flux(), ["nodes", "exceptions"]))


def watch(handle: Any, losses: Losses, changes: Changes) -> NoReturn:
    """Look again and again. Raises OSError when the broker is gone."""
    connections, most, told = Connections(handle), AGAIN_SECONDS, ""
    while True:
        begin, used = time.monotonic(), time.process_time()
        if look(handle, connections):
            most = AGAIN_SECONDS
        losses.repair()
        told = tell(saved.problem(handle), told)
        changes.wait(pause_after(time.process_time() - used), most)
        most = AGAIN_SECONDS if time.monotonic() < begin + most else min(2 * most, LOOK_SECONDS)


if __name__ == "__main__":
    try:
        settings = Path(os.environ.get("MINICLUSTER_HOME", ""), "minicluster", "agent.json")
        main(sys.argv[1], sys.argv[2] == "kept", sys.argv[3:], settings)
    except OSError as error:
        sys.exit(str(error))
