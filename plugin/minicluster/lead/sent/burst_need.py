"""Runs on the lead for `minicluster burst follow`: says how many hosts of each burst the queue needs.

Reads offers and writes answers, each a JSON object on a line. It answers each offer and each change in Flux, and once
a period.

- An offer has a ``number``, the groups of the ``root``, those that it lets grow first before others, and its
  ``bursts``, the preferred ones first. Each has its ``first`` rank, the number of ``registered`` hosts, its ``size``
  now, and ``most``, the largest size it may have.
- An answer repeats the ``number``, and has the number of ``waiting`` jobs, and in ``groups`` the `GroupNeed` of each
  group of the root and of each burst.

The first answer is ``ready``. burst/demand.py sends the program with the modules that it imports. It ends with its
standard input.
Runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Container, Iterable, Mapping, NamedTuple

import flux
import state
from changes import Changes, pause_after
from flux import constants
from need import Group, Request, Room, usable_ranks
from pending import Pending
from state import OWN_REASON, Nodes

#: Seconds between two answers, at most
PERIOD_SECONDS = 5.0


class GroupNeed(NamedTuple):
    """What the queue needs of a group; its indexes count from 0."""

    need: int  #: hosts that running jobs use, or waiting jobs would use
    held: int  #: hosts that running jobs use
    age: float  #: seconds that a job which needs more hosts than the size has waited; 0 without one
    online: str  #: indexes of the hosts that have joined


def burst_needs(
    nodes: Nodes, root: list[Group], bursts: list[Group], pending: Iterable[Request], now: float
) -> list[GroupNeed]:
    """Return what the queue needs of each group of the root, and of each burst.

    Jobs that not even all of them could run don't count. Reads ``pending`` only until the result is certain.
    """
    drained = {rank for rank, reason in nodes.drained.items() if reason.startswith(OWN_REASON)}
    # a host that has joined counts also beyond the size
    joined = nodes.online - drained

    def running(group: Group) -> Container[int]:
        return joined.union(group.ranks(group.size))

    own, own_to_come = usable_ranks(nodes, root, running)
    others, others_to_come = usable_ranks(nodes, bursts, running)
    # of the root's hosts that run, Flux gives jobs the lowest
    ranks = sorted(own) + others + own_to_come + others_to_come
    room, offered = Room(nodes, ranks), set(ranks)
    # the age is that of the first job that needs more: those behind it can't change it
    tops = {group.first + group.count(offered) - 1 for group in bursts if group.count(offered)}
    for request in pending:
        room.place(request)
        if tops <= room.since.keys():
            break
    return [_need(nodes, group, room.since, now) for group in (*root, *bursts)]


def _need(nodes: Nodes, group: Group, since: Mapping[int, float], now: float) -> GroupNeed:
    held = group.count(nodes.used)
    new = [since[rank] for rank in group.ranks(group.registered)[group.size :] if rank in since]
    online = [rank - group.first for rank in group.ranks(group.registered) if rank in nodes.online]
    age = max(now - min(new), 0.001) if new else 0.0
    return GroupNeed(max(held, group.count(since)), held, age, state.to_idset(online))


class Answers:
    """Answers the newest offer."""

    def __init__(self, handle: Any, changes: Changes) -> None:
        self.handle, self.changes = handle, changes
        self.pending = Pending(handle)
        self.offer: dict[str, Any] = {}
        self.rest = b""
        self.ends = False

    def read(self, *_: Any) -> None:
        """Take the offers that came on standard input; without any, it has ended."""
        data = os.read(0, 1 << 16)
        self.ends = not data
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self.offer = json.loads(line)
        self.changes.wake()

    def write(self, now: float) -> None:
        """Write what the queue needs. Raises OSError."""
        root, bursts = ([Group(**each) for each in self.offer[key]] for key in ("root", "bursts"))
        nodes = state.nodes(self.handle)
        waiting = state.waiting_jobs(self.handle)
        needs = burst_needs(nodes, root, bursts, self.pending.requests(waiting, now), now)
        answer = {"number": self.offer["number"], "waiting": len(waiting), "groups": [need._asdict() for need in needs]}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def main() -> None:
    """Answer until standard input ends. Raises OSError when the broker is gone."""
    changes = Changes(flux.Flux())
    answers = Answers(flux.Flux(), changes)
    print(json.dumps({"ready": answers.handle.attr_get("version")}), flush=True)
    with changes.handle.fd_watcher_create(0, answers.read, constants.FLUX_POLLIN):
        while not answers.ends:
            used = time.process_time()
            if answers.offer:
                answers.write(time.monotonic())
            changes.wait(pause_after(time.process_time() - used), PERIOD_SECONDS)


if __name__ == "__main__":
    main()
