"""How much of an elastic Job Kueue admits, by the pods that it keeps gated: pure, the agent takes the numbers.

Kueue admits a new size as a whole: while there is no quota for all of it, none of its new pods starts.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: Seconds for which Kueue may take to admit pods
PATIENCE = 15.0
#: Seconds after which more than was admitted is tried again
RETRY = 300.0


@dataclass
class Quota:
    """Remembers what was refused; all times in seconds of a monotonic clock."""

    limit: float = math.inf  #: the largest size to ask for
    since: float | None = None  #: since when pods have been gated
    again: float = math.inf  #: when more is tried

    def look(self, now: float, size: int, gated: int) -> int:
        """Return the size to have: ``size``, or halfway to what was admitted when pods have been gated for too long."""
        if now >= self.again:
            self.limit = self.again = math.inf
        if not gated:
            self.since = None
            return size
        if self.since is None:
            self.since = now
        if now - self.since < PATIENCE:
            return size
        self.since, self.limit, self.again = None, size - 1, now + RETRY
        return size - (gated + 1) // 2
