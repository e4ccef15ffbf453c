"""How much of an elastic Job Kueue admits, by the number of pods that it keeps gated; the agent counts them.

Kueue admits a new size as a whole: unless there is quota for all of it, none of its new pods starts.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: Seconds that Kueue may take to admit pods
ADMISSION_SECONDS = 15.0
#: Seconds until the agent again asks for more than Kueue has admitted
QUOTA_SECONDS = 300.0


@dataclass
class Quota:
    """Remembers which size Kueue refused; all times in seconds of a monotonic clock."""

    limit: float = math.inf  #: the largest size to ask for
    since: float | None = None  #: since when pods have been gated
    again: float = math.inf  #: when the limit ends

    def granted(self, now: float, size: int, gated: int) -> int:
        """Return the size to have: ``size``, or if pods have been gated for too long, halfway to the admitted size."""
        if now >= self.again:
            self.limit = self.again = math.inf
        if not gated:
            self.since = None
            return size
        assert gated <= size, f"{gated} of {size} pods are gated"
        if self.since is None:
            self.since = now
        if now - self.since < ADMISSION_SECONDS:
            return size
        self.since, self.limit, self.again = None, size - 1, now + QUOTA_SECONDS
        return size - (gated + 1) // 2
