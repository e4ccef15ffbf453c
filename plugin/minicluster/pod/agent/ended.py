"""How many jobs have ended, by how: a counter that never goes back, although Flux purges the records of old jobs.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping

from state import RESULTS


@dataclass
class EndedJobs:
    """Remembers what was counted of purged jobs: Flux tells only how many these are."""

    last: Mapping[str, int] = field(default_factory=dict)  #: the counts at the last look; {}: none yet
    purged: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RESULTS, 0))

    def counts(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Return the counts of jobs with all that have ended since the first look."""
        new = counts["purged"] - self.last.get("purged", counts["purged"])
        if self.last and new >= 0:
            # as many of each kind are gone as its count has sunk, at least
            for result in RESULTS:
                sunk = min(new, max(0, self.last[result] - counts[result]))
                self.purged[result] += sunk
                new -= sunk
            # the others came and went; most often all jobs end alike
            self.purged[max(RESULTS, key=lambda result: counts[result])] += new
        self.last = dict(counts)
        return {**counts, **{result: counts[result] + self.purged[result] for result in RESULTS}}
