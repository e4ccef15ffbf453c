"""The place of a job's bar in the row of a node: jobs that share a node at a time have a lane each."""

import math
from collections.abc import Iterable

#: Jobs at a time that have lanes on a node; more lie on each other
LANE_JOBS = 64


class Lanes:
    """The lanes of all nodes, and until when each is taken."""

    def __init__(self) -> None:
        self._ends: dict[int, list[float]] = {}

    def take(self, ranks: Iterable[int], start: float, end: float | None) -> list[int]:
        """Return the lane on each rank for a job that starts; without an ``end`` it stays there until `free`.

        Jobs come in the order of their starts, in seconds since the epoch.
        """
        return [self._take(self._ends.setdefault(rank, []), start, math.inf if end is None else end) for rank in ranks]

    def _take(self, ends: list[float], start: float, end: float) -> int:
        for lane, taken in enumerate(ends):
            if taken <= start:
                ends[lane] = end
                return lane
        if len(ends) < LANE_JOBS:
            ends.append(end)
        return len(ends) - 1

    def free(self, ranks: Iterable[int], lanes: Iterable[int], end: float) -> None:
        """Note that a job has left its lanes."""
        for rank, lane in zip(ranks, lanes, strict=False):
            self._ends[rank][lane] = end

    def count(self, rank: int) -> int:
        """Return how many lanes a node has, at least 1."""
        return max(1, len(self._ends.get(rank, ())))
