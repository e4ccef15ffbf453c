"""When a burst grows and shrinks: pure functions of what the queue needs, over time.

All times are in seconds of a monotonic clock.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True)
class BurstLimits:
    """Limits of a burst's size, and its windows in seconds."""

    min: int
    max: int
    backlog: float  #: one job that needs more hosts must have waited for so long
    idle: float  #: fewer hosts must have been enough for so long


@dataclass(frozen=True)
class Seen:
    """What the queue needs of a burst at one time."""

    now: float
    need: int  #: hosts that jobs have, or that waiting jobs would have
    held: int  #: hosts that jobs have
    age: float = 0.0  #: seconds for which a job has waited that needs more hosts than there are; 0: there is none


class BurstDecision(NamedTuple):
    """The size that a burst should have now."""

    size: int
    wait: float = math.inf  #: seconds after which this may change although nothing else does


@dataclass
class Windows:
    """Remembers what was needed. A new one only waits for its windows again."""

    #: Since when so many hosts are needed; the first entry is from before the idle window, once that is over
    past: list[tuple[float, int]] = field(default_factory=list)

    def forget(self) -> None:
        """Begin anew: what the queue needs was not known for a while."""
        self.past.clear()

    def decide(self, policy: BurstLimits, seen: Seen, size: int) -> BurstDecision:
        """Return the size for a burst that has ``size`` hosts.

        It is between ``min`` and ``max``, but a burst that is larger already keeps the hosts that jobs have.
        """
        largest = self._largest(policy, seen)
        if size < policy.min:
            return BurstDecision(policy.min)
        wanted = min(seen.need, policy.max)
        if wanted > size:
            left = policy.backlog - seen.age
            return BurstDecision(size, left) if left > 0 else BurstDecision(wanted)
        least = max(min(largest, policy.max), policy.min, seen.held)
        if least < size and seen.now - self.past[0][0] >= policy.idle:
            return BurstDecision(least)
        return BurstDecision(size)

    def _largest(self, policy: BurstLimits, seen: Seen) -> int:
        """Note what is needed, and return the most that was needed within the idle window."""
        if not self.past or self.past[-1][1] != seen.need:
            self.past.append((seen.now, seen.need))
        while len(self.past) > 1 and self.past[1][0] <= seen.now - policy.idle:
            self.past.pop(0)
        return max(need for _, need in self.past)
