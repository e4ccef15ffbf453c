"""The Job of the cluster's own nodes, or of a group: its size, what should become of it, and the change.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Container, Mapping

import drains
import state
from autoscale import Autoscaler, Decision, Policy, Snapshot
from group_settings import read_groups
from kube import Kube, KubeError
from kube_job import is_elastic, pods
from log import Once, log
from need import Group
from quota import Quota


@dataclass
class SizedJob:
    """What the agent knows of a Job, and remembers from look to look."""

    group: str  #: its name, "" for the cluster's own nodes
    ranks: range  #: of all hosts that the brokers know
    priority: int  #: those with a larger one grow first
    kube: Kube
    policy: Policy
    job: dict[str, Any] = field(default_factory=dict)  #: as Kubernetes had it last; {} before that
    autoscaler: Autoscaler = field(default_factory=Autoscaler)
    quota: Quota = field(default_factory=Quota)  #: of Kueue
    refused: Decision | None = None  #: what to do because it lets the Job have fewer pods; for one look
    snapshot: Snapshot | None = None  #: the last one, for metrics while the API server is away

    def take(self, kube: Kube, policy: Policy, priority: int) -> None:
        """Take the settings of this look."""
        self.kube, self.policy, self.priority = kube, policy, priority

    @property
    def size(self) -> int:
        """Pods of the Job, as Kubernetes had it last."""
        return pods(self.job) if self.job else 0

    @property
    def most(self) -> int:
        """The largest size to ask for."""
        return int(max(self.policy.min, min(self.policy.max, self.quota.limit)))

    def hosts(self) -> Group:
        """Return its hosts. Jobs have no room on those of a Job that was never read."""
        return Group(self.ranks.start, len(self.ranks), self.size, self.most if self.job else 0)

    def gone(self) -> range:
        """Return the ranks that have no pod."""
        return self.ranks[self.size :]

    def wishes(self) -> dict[str, int]:
        """Return the size that each reason asks for; {} before the first look."""
        return self.snapshot.wishes(self.policy) if self.snapshot else {}

    def count_gated(self, gated: int | None, now: float) -> None:
        """Take the number of pods for which Kueue has no quota; None: it is unknown."""
        admitted = max(self.policy.min, self.quota.granted(now, self.size, gated or 0))
        is_less = admitted < self.size
        self.refused = Decision(admitted, f"Kueue has no quota for {gated} of its pods") if is_less else None

    @property
    def is_elastic(self) -> bool:
        """Whether Kueue lets the size change."""
        return is_elastic(self.job)

    def gated(self) -> int:
        """Return how many of its pods wait for Kueue's quota. Raises KubeError."""
        if not self.is_elastic:
            return 0
        # a group that Kueue has not admitted, or has suspended, has no pods that could be counted
        return self.size if self.group and self.job["spec"].get("suspend") else self.kube.gated()

    def decide(self, snapshot: Snapshot) -> Decision:
        """Return what to do now."""
        self.snapshot = snapshot
        decision = self.autoscaler.decide(replace(self.policy, max=self.most), snapshot)
        refused, self.refused = self.refused, None
        return refused or decision

    def resize(self, handle: Any, decision: Decision, gone: Container[int], now: float, once: Once) -> None:
        """Change the size. The Job shrinks only when no job can start on the nodes that leave.

        ``gone`` are the ranks without a pod, of all Jobs. Raises KubeError, OSError.
        """
        size = self.size
        # a size that was set by hand may be larger than Flux's table of hosts
        leaving = self.ranks[decision.size : size]
        drains.drain(handle, leaving)
        busy = state.nodes(handle) if leaving else None
        if busy and any(rank in busy.used for rank in leaving):
            drains.undrain_ours(handle, busy, gone)
            self.say(f"size {size}: a job started on a node that was about to go", once)
            return
        try:
            self.job = self._change(decision.size)
        except KubeError:
            drains.undrain_ours(handle, state.nodes(handle), gone)
            raise
        self.autoscaler.stepped = now
        self.tell("Scaled", f"size {size} -> {decision.size}: {decision.why}", once)

    def _change(self, size: int) -> dict[str, Any]:
        return self.kube.resize(self.job, size) if size else self.kube.empty(self.job, len(self.ranks))

    def say(self, line: str, once: Once) -> None:
        """Log a line about the size, unless it is the last one."""
        once.log(f"group {self.group}: {line}" if self.group else line, f"size {self.group}")

    def tell(self, reason: str, line: str, once: Once) -> None:
        """Log a line, and record it as an event of the Job."""
        self.say(line, once)
        try:
            self.kube.event(self.job, reason, line)
        except KubeError as error:
            log(f"the event was not recorded: {error}")


def sized_jobs(kube: Kube, settings: Mapping[str, Any], policy: Policy, before: list[SizedJob]) -> list[SizedJob]:
    """Return the Jobs of the settings, the cluster's own first, with what is remembered of them."""
    groups = read_groups(settings)
    found = before or [SizedJob(each.name, each.ranks, 0, kube, policy) for each in groups]
    found[0].take(kube, policy, 0)
    for job, group in zip(found[1:], groups[1:]):
        least, most, priority = (int(group.limits[key]) for key in ("min", "max", "priority"))
        of_group = replace(policy, min=least, max=most, cpu_target=0, handle=False, suspend=0)
        job.take(kube.of_group(group.name), of_group, priority)
    return found
