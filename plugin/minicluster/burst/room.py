"""The room for jobs of which a lead is told: that of the root, with its groups, and that of its bursts."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from minicluster.cluster.groups import size_of
from minicluster.cluster.job import end_of
from minicluster.render.model import MiniClusterModel
from minicluster.render.resources import ranked


class Offer(NamedTuple):
    """Hosts of consecutive ranks that the queue may use."""

    first: int
    registered: int
    size: int = 0  #: hosts that run or start
    most: int = 0  #: the most hosts that it may have


class RootJob(NamedTuple):
    """A Job of a root: that of its own hosts, or of a group."""

    name: str
    ranks: range  #: of all its hosts
    most: int = 0  #: hosts that the autoscaler may make; 0 without one
    priority: int = 0  #: those with a larger one grow first

    def offer(self, job: Mapping[str, Any]) -> Offer:
        """Return what it has, and may add by itself, by the Job in Kubernetes; none when that has ended or is gone."""
        if end_of(self.name, job):
            return Offer(self.ranks.start, len(self.ranks))
        # nobody knows when one that is held back starts
        size = 0 if job["spec"].get("suspend") else size_of(job)
        return Offer(self.ranks.start, len(self.ranks), size, max(size, self.most))


def root_jobs(root: MiniClusterModel) -> list[RootJob]:
    """Return the Jobs of a root, in the order in which its autoscaler lets them grow."""
    own, *others = (ranks for ranks, _ in ranked(root))
    root_pools = [RootJob(root.name, own, int(root.autoscaling.get("max", 0)))]
    for group, ranks in zip(root.groups, others, strict=False):
        limits = group.autoscaling
        root_pools.append(RootJob(f"{root.name}-{group.name}", ranks, limits.get("max", 0), limits.get("priority", 0)))
    return sorted(root_pools, key=lambda job: -job.priority)
