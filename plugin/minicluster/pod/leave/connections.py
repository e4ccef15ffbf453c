"""Which brokers are connected, and since when, as their parents in the tree of brokers see it.

A broker is connected before it is online, and until it has ended.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

#: What a parent says of a child that is not connected (flux-overlay(1))
LOST_STATES = ("offline", "lost")
#: Seconds that a parent has to answer
PARENT_SECONDS = 5.0


class Connections:
    """The tree of brokers, which never changes, and what its inner nodes say; each is asked once."""

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
