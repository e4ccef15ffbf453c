"""Brings the Job to the size that the cluster should have, and suspends an idle cluster.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Callable, TypeVar

import drains
import state
import suspend
from autoscale import Autoscaler, Decision, Policy, Snapshot, parse_policy
from kube import Kube, KubeError, is_elastic
from log import Once, log
from need import queue_need
from pending import Pending
from quota import Quota
from replicas import Replicas

T = TypeVar("T")


class Scaler:
    """Takes a snapshot at each look, decides and acts."""

    def __init__(self, handle: Any, once: Once) -> None:
        """Ask nothing yet."""
        self.handle, self.once = handle, once
        self.autoscaler = Autoscaler()
        self.snapshot: Snapshot | None = None  #: the last one, for metrics while the API server is away
        self.pending = Pending(handle)
        self.job: dict[str, Any] = {}  #: as Kubernetes had it last
        self.cpu: float | None = None  #: CPU use as a number of runners' requests; None if unknown or not wanted
        self.quota = Quota()  #: of Kueue
        self.replicas = Replicas()
        self.expires = -math.inf  #: when Kubernetes is asked again
        self.idle, self.idle_left = suspend.Idle(), math.inf  #: seconds until an idle cluster is suspended

    def look(
        self, kube: Kube, settings: dict[str, Any], nodes: state.Nodes, waiting: list[dict[str, Any]], now: float
    ) -> tuple[float, float]:
        """Bring the cluster to its size; return the least and the most seconds until the next look.

        Raises KubeError, OSError.
        """
        wait = self._scale(kube, settings, nodes, waiting, now)
        # while a window is open, another look can't change the decision
        return 0.0 if wait == math.inf else wait, min(wait, self.expires - now, self.idle_left)

    def _scale(
        self, kube: Kube, settings: dict[str, Any], nodes: state.Nodes, waiting: list[dict[str, Any]], now: float
    ) -> float:
        """Bring the cluster to its size; return the seconds until it grows, infinite if it is not about to."""
        policy = parse_policy(settings["policy"], float(settings["period"]))
        scheduled = now >= self.expires
        if scheduled:
            self._read(kube, settings, policy)
            self.expires = now + policy.period
        if suspend.is_asleep(self.job):
            self._watch_last_jobs(kube)
            self.idle_left = math.inf
            return math.inf
        own = int(settings["max_size"])
        if scheduled and policy.handle:
            self._try(
                "the Deployment's replicas can't be read or changed",
                lambda: self.replicas.look(self.handle, kube, self.once, self.size, policy),
            )
        is_counted = scheduled and is_elastic(self.job)
        gated = (self._try("pods that wait for Kueue's quota can't be counted", kube.gated) if is_counted else 0) or 0
        admitted = self.quota.look(now, self.size, gated) if scheduled else self.size
        policy = replace(policy, max=int(max(policy.min, min(policy.max, self.quota.limit))))
        snapshot, decision = self._decide(policy, nodes, own, waiting, now)
        if admitted < self.size:
            decision = Decision(admitted, f"Kueue has no quota for {gated} of its pods")
        if not scheduled and (decision.size != snapshot.size or not self.idle_left):
            # it acts only on the present Job
            self._read(kube, settings, policy)
            snapshot, decision = self._decide(policy, nodes, own, waiting, now)
        self.snapshot = snapshot
        if not self.idle_left:
            self._suspend(kube, policy, own, now)
        elif decision.size != snapshot.size:
            self._resize(kube, snapshot, decision)
        elif scheduled:
            self.once.log(f"size {snapshot.size}: {decision.why}")
        return decision.wait

    @property
    def size(self) -> int:
        """Size of the Job, as Kubernetes had it last."""
        return int(self.job["spec"]["completions"])

    def _try(self, failure: str, ask: Callable[[], T]) -> T | None:
        """Ask Kubernetes for what the agent can do without; if it fails, log that and return None."""
        try:
            found = ask()
        except KubeError as error:
            self.once.log(f"{failure}: {error}", failure)
            return None
        self.once.log("", failure)
        return found

    def _decide(
        self, policy: Policy, nodes: state.Nodes, own: int, waiting: list[dict[str, Any]], now: float
    ) -> tuple[Snapshot, Decision]:
        drains.undrain_ours(self.handle, nodes, self.size, own)
        snapshot = self._snapshot(policy, nodes, own, waiting, now)
        is_asked = policy.suspend and not self.job["spec"].get("suspend")
        self.idle_left = self.idle.left(policy, snapshot, suspend.use(self.handle)) if is_asked else math.inf
        return snapshot, self.autoscaler.decide(policy, snapshot)

    def _suspend(self, kube: Kube, policy: Policy, own: int, now: float) -> None:
        job = suspend.suspend(self.handle, kube, self.job, policy, own)
        if job:
            # these pods get no more jobs; if somebody resumes the Job, new pods run them
            self.job, self.expires = job, now + policy.period
            # if the Job is resumed while these pods end, the idle window begins again
            self.idle = suspend.Idle()
            self._tell(kube, "Idle", f"suspended: idle for {policy.suspend:g} s")

    def _watch_last_jobs(self, kube: Kube) -> None:
        """Resume the cluster if a job is submitted while its pods end."""
        if suspend.use(self.handle).active and suspend.resume(kube):
            self._tell(kube, "Woken", "resumed: a job came while the pods ended")

    def _read(self, kube: Kube, settings: dict[str, Any], policy: Policy) -> None:
        job = kube.get_job()
        # somebody resumed the Job without `minicluster`, which removes the annotation
        is_stale = suspend.has_slept(job) and not suspend.is_asleep(job)
        self.job = kube.resume(job, {suspend.SUSPENDED: None}) if is_stale else kube.drop_field_ownership(job)
        used = (
            self._try("CPU use can't be read", lambda: kube.cpu(settings["container"])) if policy.cpu_target else None
        )
        self.cpu = None if used is None else used / float(settings["cpu_request"])

    def _snapshot(
        self, policy: Policy, nodes: state.Nodes, own: int, waiting: list[dict[str, Any]], now: float
    ) -> Snapshot:
        size = self.size
        # jobs may need hosts of bursts too
        need = queue_need(nodes, size, policy.max, self.pending.requests(waiting, now))
        cpu = None if self.cpu is None else self.cpu / size
        return Snapshot(now, size, nodes.first(own), need, len(waiting), state.requested_size(self.handle), cpu)

    def _resize(self, kube: Kube, snapshot: Snapshot, decision: Decision) -> None:
        """Change the size. A cluster shrinks only when no job can start on the nodes that leave."""
        # a size that was set by hand may be larger than Flux's table of hosts
        leaving = [rank for rank in range(decision.size, snapshot.size) if rank in snapshot.nodes.all]
        drains.drain(self.handle, leaving)
        nodes = state.nodes(self.handle) if leaving else snapshot.nodes
        if any(rank in nodes.used for rank in leaving):
            drains.undrain_ours(self.handle, nodes, snapshot.size)
            self.once.log(f"size {snapshot.size}: a job started on a node that was about to go")
            return
        try:
            self.job = kube.resize(self.job, decision.size)
        except KubeError:
            drains.undrain_ours(self.handle, state.nodes(self.handle), snapshot.size)
            raise
        self.autoscaler.stepped = snapshot.now
        self._tell(kube, "Scaled", f"size {snapshot.size} -> {decision.size}: {decision.why}")

    def _tell(self, kube: Kube, reason: str, line: str) -> None:
        self.once.log(line)
        try:
            kube.event(self.job, reason, line)
        except KubeError as error:
            log(f"the event was not recorded: {error}")
