"""The Job of the cluster's own nodes, or of a group: its size, what should become of it, and the change.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Container, Iterable, Mapping

import state
from autoscale import Autoscaler, Decision, Policy, Snapshot, read_groups
from kube import Kube, KubeError, is_elastic
from log import Once, log
from need import Group
from placement import TOLD_SECONDS, Lacking, Placement, Quota, lacking, named
from suspend import drain, undrain_ours

#: Seconds after which Kueue suspends a Job with a pod that is not ready, by default
KUEUE_SECONDS = 1800
#: Seconds after which such pods are given up, by default: their nodes' jobs have as long to end
GIVE_UP_SECONDS = 900


def pods(job: Mapping[str, Any]) -> int:
    """Return the number of pods that a Job should have."""
    return int(job["spec"]["completions"]) if job["spec"]["parallelism"] else 0


@dataclass
class ScaledJob:
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
    placement: Placement = field(default_factory=Placement)
    kept: float = math.inf  #: the size that is left once the pods are given up that are not ready
    snapshot: Snapshot | None = None  #: the last one, for metrics while the API server is away

    def take(self, kube: Kube, policy: Policy, priority: int) -> None:
        """Take the settings of this look."""
        self.kube, self.policy, self.priority = kube, policy, priority

    @property
    def size(self) -> int:
        """Pods of the Job, as Kubernetes had it last."""
        return pods(self.job) if self.job else 0

    @property
    def least(self) -> int:
        """The smallest size to ask for: pods that nobody can place are not there, whatever the policy says."""
        return int(min(self.policy.min, self.placement.limit))

    @property
    def most(self) -> int:
        """The largest size to ask for."""
        admitted = max(self.policy.min, min(self.policy.max, self.quota.limit))
        return int(min(admitted, self.placement.limit))

    @property
    def patience(self) -> float:
        """Seconds after which pods that are not ready are given up; 0: never."""
        return GIVE_UP_SECONDS if self.policy.give_up is None else self.policy.give_up

    def hosts(self) -> Group:
        """Return its hosts. Jobs have no room on those of a Job that was never read."""
        return Group(self.ranks.start, len(self.ranks), self.size, self.most if self.job else 0)

    def gone(self) -> range:
        """Return the ranks that have no pod."""
        return self.ranks[self.size :]

    def leaving(self) -> range:
        """Return the ranks that go when they have no jobs, because pods are given up that are not ready."""
        return self.ranks[int(min(self.kept, self.size)) : self.size]

    def finishing(self, nodes: state.Nodes) -> range:
        """Return the same while any of them has jobs."""
        leaving = self.leaving()
        return leaving if any(rank in nodes.used for rank in leaving) else self.ranks[:0]

    def wishes(self) -> dict[str, int]:
        """Return the size that each reason asks for; {} before the first look."""
        return self.snapshot.wishes(self.policy) if self.snapshot else {}

    def count(self, lacks: Lacking | None, online: Iterable[int], now: float) -> None:
        """Take what the Job lacks, and which ranks are in Flux: those are nodes, ready or not. None: it is unknown."""
        self.refused = None
        if lacks is None:
            return
        admitted = max(self.policy.min, self.quota.granted(now, self.size, lacks.gated))
        if admitted < self.size:
            self.refused = Decision(admitted, f"Kueue has no quota for {lacks.gated} of its pods")
        there = {rank - self.ranks.start for rank in online if rank in self.ranks}
        # the lead stays
        least = 0 if self.group else 1
        kept = max(least, self.placement.kept(now, self.size, lacks.without(there), self.patience or math.inf))
        self.kept = kept if kept < self.size else math.inf

    @property
    def is_elastic(self) -> bool:
        """Whether Kueue lets the size change."""
        return is_elastic(self.job)

    def lacks(self) -> Lacking:
        """Return what keeps its pods from being ready, as far as Kueue minds. Raises KubeError."""
        if not self.is_elastic:
            return Lacking()
        # a group that Kueue has not admitted, or has suspended, has no pods that could be counted
        is_held = self.group and self.job["spec"].get("suspend")
        return Lacking(self.size) if is_held else lacking(self.kube.pods(), self.size)

    def decide(self, snapshot: Snapshot) -> Decision:
        """Return what to do now."""
        self.snapshot = snapshot
        assert self.least <= self.most, f"the size is to be from {self.least} to {self.most}"
        decision = self.autoscaler.decide(replace(self.policy, min=self.least, max=self.most), snapshot)
        refused, self.refused = self.refused, None
        return refused or self._give_up(snapshot, decision)

    def _give_up(self, snapshot: Snapshot, decision: Decision) -> Decision:
        """Return a decision, or the one to give up pods that are not ready."""
        if not self.leaving() or decision.size <= self.kept:
            return decision
        who = named("pod", self.placement.since)
        if self.finishing(snapshot.nodes):
            highest = named("node", range(int(self.kept), self.size))
            return Decision(self.size, f"waits: {who} will be given up when no job uses {highest}")
        return Decision(int(self.kept), f"{who} not ready for {self.patience:g} s, and Kueue would suspend all pods")

    def warning(self, now: float) -> str:
        """Return what is going to happen because pods are not ready; "" while most may just be starting."""
        if not self.placement.is_over(now, min(TOLD_SECONDS, self.patience or TOLD_SECONDS)):
            return ""
        then = f"after {self.patience:g} s the size gets smaller, " if self.patience else ""
        who = named("pod", self.placement.since)
        return f"{who} not ready: {then}after {KUEUE_SECONDS} s, by default, Kueue suspends all pods (waitForPodsReady)"

    def resize(self, handle: Any, decision: Decision, gone: Container[int], now: float, once: Once) -> None:
        """Change the size. The Job shrinks only when no job can start on the nodes that leave.

        ``gone`` are the ranks without a pod, of all Jobs. Raises KubeError, OSError.
        """
        size = self.size
        assert decision.size or self.group, "the lead stays: without work the cluster is suspended"
        # a size that was set by hand may be larger than Flux's table of hosts
        leaving = self.ranks[decision.size : size]
        drain(handle, leaving)
        busy = state.nodes(handle) if leaving else None
        if busy and any(rank in busy.used for rank in leaving):
            undrain_ours(handle, busy, gone)
            self.say(f"size {size}: a job started on a node that was about to go", once)
            return
        try:
            self.job = self._change(decision.size)
        except KubeError:
            undrain_ours(handle, state.nodes(handle), gone)
            raise
        self.autoscaler.stepped = now
        if decision.size <= self.kept < math.inf:
            self.placement.give_up(now, decision.size)
        self.kept = math.inf
        self.tell("Scaled", f"size {size} -> {decision.size}: {decision.why}", once)

    def _change(self, size: int) -> dict[str, Any]:
        return self.kube.resize(self.job, size) if size else self.kube.empty(self.job, len(self.ranks))

    def say(self, line: str, once: Once) -> None:
        """Log a line about the size, unless it is the last one."""
        self.log(line, "size", once)

    def log(self, line: str, about: str, once: Once) -> None:
        """Log a line, unless it is the last one about its subject."""
        once.log(f"group {self.group}: {line}" if self.group and line else line, f"{about} {self.group}")

    def tell(self, reason: str, line: str, once: Once) -> None:
        """Log a line, and record it as an event of the Job."""
        self.say(line, once)
        try:
            self.kube.event(self.job, reason, line)
        except KubeError as error:
            log(f"the event was not recorded: {error}")


def scaled_jobs(kube: Kube, settings: Mapping[str, Any], policy: Policy, before: list[ScaledJob]) -> list[ScaledJob]:
    """Return the Jobs of the settings, the cluster's own first, with what is remembered of them."""
    groups = read_groups(settings)
    jobs_scaled = before or [ScaledJob(each.name, each.ranks, 0, kube, policy) for each in groups]
    jobs_scaled[0].take(kube, policy, 0)
    for job, group in zip(jobs_scaled[1:], groups[1:]):
        least, most, priority = (int(group.limits[key]) for key in ("min", "max", "priority"))
        of_group = replace(policy, min=least, max=most, cpu_target=0, handle=False, suspend=0)
        job.take(kube.of_group(group.name), of_group, priority)
    return jobs_scaled
