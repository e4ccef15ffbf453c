"""The pods that must not be evicted: the agent keeps them in the selector of a PodDisruptionBudget.

Its `minAvailable` is above any number of pods, so Kubernetes refuses each eviction of a pod that it selects. Other pods
may go. No manifest has the selector, so no upgrade and no sync changes it.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Collection

from kube import INDEX, JOB_NAME, Kube
from state import Nodes
from suspend import use


def pods_to_hold(handle: Any, nodes: Nodes, ranks: range, always_lead: bool) -> frozenset[int]:
    """Return the indexes of the pods of a Job to hold, whose nodes have ``ranks``: those with jobs, and the lead.

    Without ``always_lead`` the lead may go while there is no job. Raises OSError.
    """
    held = set(nodes.of(ranks).used)
    if 0 in ranks and (always_lead or use(handle).active):
        held.add(0)
    return frozenset(held)


def selector(job: str, indexes: Collection[int]) -> dict[str, Any] | None:
    """Return the selector of some pods of a Job; None, which selects nothing, for no pods."""
    if not indexes:
        return None
    values = [str(index) for index in sorted(indexes)]
    return {
        "matchLabels": {JOB_NAME: job},
        "matchExpressions": [{"key": INDEX, "operator": "In", "values": values}],
    }


@dataclass
class DisruptionBudget:
    """Remembers which pods it holds."""

    held: frozenset[int] = frozenset()
    expires: float = -math.inf  #: when the next period begins

    def hold(self, kube: Kube, pods: frozenset[int], now: float, period: float) -> tuple[float, float]:
        """Hold these pods: new ones at once; those that may go leave once a period, so short jobs cost few requests.

        Return the least and the most seconds until the next look. Raises KubeError.
        """
        is_due = now >= self.expires
        if is_due or not pods <= self.held:
            wanted = pods if is_due else pods | self.held
            assert pods <= wanted, "a busy pod may not be evicted"
            budget, asked = kube.get_budget(), selector(kube.name, wanted)
            # once a period also if somebody else has changed it
            if budget["spec"].get("selector") != asked:
                kube.select(budget, asked)
            self.held = wanted
            if is_due:
                self.expires = now + period
        return 0.0, self.expires - now
