"""Brings the cluster's Jobs to the sizes that they should have, and suspends an idle cluster.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, TypeVar

import state
import suspend
from autoscale import Decision, Policy, Snapshot, parse_policy
from kube import Kube, KubeError, is_emptying
from log import Once
from need import queue_needs
from pending import Pending
from scaled_job import ScaledJob, scaled_jobs
from state import request_size

#: Annotation of the Deployment: the replicas that the agent has seen or written last
SEEN = "minicluster/replicas"
#: The replicas of a new Deployment whose manifest names none
NEW_REPLICAS = 1
T = TypeVar("T")


@dataclass(frozen=True)
class RanksWithoutPods:
    """Ranks in ranges: there may be 100,000, and no look walks through them."""

    ranges: tuple[range, ...]

    def __contains__(self, rank: object) -> bool:
        return any(rank in each for each in self.ranges)


@dataclass
class Replicas:
    """Replicas of a Deployment, by which `kubectl scale`, a HorizontalPodAutoscaler or KEDA requests a size.

    A Job has no scale subresource, and a Deployment has one. This one is paused, so Kubernetes makes no pods for it.
    Replicas that the agent did not write are a request, which holds like that of minicluster-scale. When the size has
    changed, the agent writes it into the replicas, so other clients see the live size.
    """

    size: int = 0  #: that they were last compared with; 0: none yet

    def ask(self, handle: Any, kube: Kube, once: Once, size: int, policy: Policy) -> None:
        """Request in Flux what somebody requests by the replicas, and write a size that is new into them.

        ``size`` is that of the Job; a request is brought into the policy's limits. Raises KubeError, OSError.
        """
        deployment = kube.get_deployment()
        asked = int(deployment["spec"]["replicas"])
        seen = deployment["metadata"].get("annotations", {}).get(SEEN)
        if str(asked) != (seen or str(NEW_REPLICAS)):
            replicas = max(policy.min, min(asked, policy.max))
            limits = f", and the size is from {policy.min} to {policy.max}: {replicas} is requested"
            about = "" if replicas == asked else limits
            once.log(f"replicas of Deployment {kube.name} are {asked}{about}", "replicas")
            # before it is marked as seen: an agent that ends in between does this again
            request_size(handle, replicas)
        else:
            replicas = asked if seen and size == self.size else size
        if (replicas, str(replicas)) != (asked, seen):
            kube.set_replicas(deployment, replicas, {SEEN: str(replicas)})
        self.size = size


class Scaler:
    """Takes a snapshot at each look, decides and acts."""

    def __init__(self, handle: Any, once: Once) -> None:
        self.handle, self.once = handle, once
        self.jobs: list[ScaledJob] = []  #: the first is that of the cluster's own nodes
        self.pending = Pending(handle)
        self.cpu: float | None = None  #: CPU use as a number of runners' requests; None if unknown or not wanted
        self.replicas = Replicas()
        self.expires = -math.inf  #: when Kubernetes is asked again
        self.idle, self.idle_left = suspend.Idle(), math.inf  #: seconds until an idle cluster is suspended

    def scale(
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
        self.jobs = scaled_jobs(kube, settings, policy, self.jobs)
        scheduled = now >= self.expires
        if scheduled:
            self._read(settings)
            self.expires = now + policy.period
        if suspend.is_asleep(self.own.job):
            self._watch_last_jobs(kube)
            self.idle_left = math.inf
            return math.inf
        if scheduled:
            self._ask(kube, policy, nodes, now)
        decisions = self._decide(policy, nodes, waiting, now)
        if not scheduled and (self._changes(decisions) or not self.idle_left):
            # it acts only on the present Jobs
            self._read(settings)
            decisions = self._decide(policy, nodes, waiting, now)
        if not self.idle_left:
            self._suspend(kube, policy, now)
        else:
            self._act(decisions, scheduled, now)
        return min(decision.wait for decision in decisions)

    @property
    def own(self) -> ScaledJob:
        """The Job of the cluster's own nodes."""
        return self.jobs[0]

    def _ask(self, kube: Kube, policy: Policy, nodes: state.Nodes, now: float) -> None:
        """Ask Kubernetes what counts once a period: the requests by replicas, and the pods that are not ready."""
        if policy.handle:
            self._try(
                "the Deployment's replicas can't be read or changed",
                lambda: self.replicas.ask(self.handle, kube, self.once, self.own.size, policy),
            )
        for job in self.jobs:
            job.count(self._try("pods in Kueue's queue can't be counted", job.lacks), nodes.online, now)
            job.log(job.warning(now), "pods that are not ready", self.once)

    def _try(self, failure: str, ask: Callable[[], T]) -> T | None:
        """Ask Kubernetes for what the agent can do without; if it fails, log that and return None."""
        try:
            answer = ask()
        except KubeError as error:
            self.once.fail(f"{failure}: {error}", failure)
            return None
        self.once.fail("", failure)
        return answer

    def _gone(self) -> RanksWithoutPods:
        """Return the ranks that have no pod."""
        return RanksWithoutPods(tuple(job.gone() for job in self.jobs))

    def _decide(self, policy: Policy, nodes: state.Nodes, waiting: list[dict[str, Any]], now: float) -> list[Decision]:
        leaving = [rank for job in self.jobs for rank in job.leaving()]
        suspend.undrain_ours(self.handle, nodes, self._gone(), leaving)
        for job in self.jobs:
            suspend.drain(self.handle, [rank for rank in job.finishing(nodes) if rank not in nodes.drained])
        # those that grow first come first; jobs may need hosts of bursts too
        order = sorted(self.jobs, key=lambda job: -job.priority)
        requests = self.pending.requests(waiting, now)
        needs = dict(zip((job.group for job in order), queue_needs(nodes, [job.hosts() for job in order], requests)))
        decisions = []
        for job in self.jobs:
            requested = state.requested_size(self.handle, job.group)
            cpu = None if self.cpu is None or job.group else self.cpu / job.size
            seen = nodes.of(job.ranks)
            decisions.append(job.decide(Snapshot(now, job.size, seen, needs[job.group], len(waiting), requested, cpu)))
        self.idle_left = self._idle_left(policy)
        return decisions

    def _idle_left(self, policy: Policy) -> float:
        """Return the seconds until the cluster is to be suspended, infinite while something needs it."""
        snapshot, *of_groups = (job.snapshot for job in self.jobs)
        if not policy.suspend or not snapshot or any(each and each.size for each in of_groups):
            return math.inf
        is_suspended = self.own.job["spec"].get("suspend")
        return math.inf if is_suspended else self.idle.left(policy, snapshot, suspend.use(self.handle))

    def _changes(self, decisions: list[Decision]) -> bool:
        return any(decision.size != job.size for job, decision in zip(self.jobs, decisions))

    def _act(self, decisions: list[Decision], scheduled: bool, now: float) -> None:
        """Change the sizes that should change, even if one fails; say why others stay. Raises KubeError, the first."""
        failed: KubeError | None = None
        for job, decision in zip(self.jobs, decisions):
            if decision.size != job.size:
                try:
                    job.resize(self.handle, decision, self._gone(), now, self.once)
                except KubeError as error:
                    failed = failed or error
            elif scheduled:
                job.say(f"size {job.size}: {decision.why}", self.once)
        if failed:
            raise failed

    def _suspend(self, kube: Kube, policy: Policy, now: float) -> None:
        job = suspend.suspend(self.handle, kube, self.own.job, policy, self._gone())
        if job:
            # these pods get no more jobs; if somebody resumes the Job, new pods run them
            self.own.job, self.expires = job, now + policy.period
            # if the Job is resumed while these pods end, the idle window begins again
            self.idle = suspend.Idle()
            self.own.tell("Idle", f"suspended: idle for {policy.suspend:g} s", self.once)

    def _watch_last_jobs(self, kube: Kube) -> None:
        """Resume the cluster if a job is submitted while its pods end."""
        if suspend.use(self.handle).active and suspend.resume(kube):
            self.own.tell("Woken", "resumed: a job came while the pods ended", self.once)

    def _read(self, settings: dict[str, Any]) -> None:
        """Read the Jobs. Raises KubeError."""
        own, *groups = self.jobs
        job = own.kube.get_job()
        # somebody resumed the Job without `minicluster`, which removes the annotation
        is_stale = suspend.has_slept(job) and not suspend.is_asleep(job)
        resume = own.kube.resume
        own.job = resume(job, {suspend.SUSPENDED: None}) if is_stale else own.kube.drop_field_ownership(job)
        for one in groups:
            job = one.kube.get_job()
            # the agent ended between the two changes, or Helm made the first one
            is_unfinished = is_emptying(job, len(one.ranks))
            one.job = one.kube.empty(job, len(one.ranks)) if is_unfinished else one.kube.drop_field_ownership(job)
        ready = int(own.job.get("status", {}).get("ready", 0))
        used = (
            self._try("CPU use can't be read", lambda: own.kube.cpu(settings["container"], ready))
            if own.policy.cpu_target
            else None
        )
        self.cpu = None if used is None else used / float(settings["cpu_request"])
