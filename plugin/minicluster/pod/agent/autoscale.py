"""How large the cluster should be: pure functions of a snapshot. The agent takes snapshots, and acts on the decisions.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, Mapping, NamedTuple

from need import NOTHING, Need
from state import Nodes

#: CPU use this near to the target is on target, as with Kubernetes' HorizontalPodAutoscaler
TOLERANCE_PART = 0.1
STEPPED = "waits: the last step is less than a period ago"


class GroupSettings(NamedTuple):
    """Nodes whose pods are of one Job."""

    name: str  #: "" for the cluster's own
    ranks: range  #: of all hosts that the brokers know
    size: int  #: of the values
    limits: Mapping[str, Any]  #: of the autoscaler: min, max and priority; {} without one


def read_groups(settings: Mapping[str, Any]) -> list[GroupSettings]:
    """Return the groups in the order of their ranks."""
    own = {"name": "", "size": settings["size"], "max_size": settings["max_size"], "policy": settings["policy"]}
    groups, first = [], 0
    for each in (own, *settings["groups"]):
        ranks = range(first, first + int(each["max_size"]))
        groups.append(GroupSettings(each["name"], ranks, int(each["size"]), each["policy"] or {}))
        first = ranks.stop
    return groups


@dataclass(frozen=True)
class Policy:
    """``autoscaling`` of the values; windows in seconds."""

    min: int
    max: int
    backlog: float
    idle: float
    step_up: int = 0  #: 0: no limit
    step_down: int = 0
    cpu_target: int = 0  #: percent of the request; 0: CPU use does not count
    handle: bool = False  #: whether the replicas of a Deployment request a size
    suspend: float = 0  #: seconds after which an idle cluster is suspended; 0: never
    give_up: float | None = None  #: seconds after which pods that are not ready are given up; None: unset, 0: never
    period: float = 0  #: seconds between two steps, if ``step_up`` or ``step_down`` limits them


def parse_policy(policy: Mapping[str, Any], period: float) -> Policy:
    """Return the policy of the settings, without keys that only a newer version knows."""
    names = {each.name for each in fields(Policy)}
    return Policy(**{**{name: value for name, value in policy.items() if name in names}, "period": period})


@dataclass(frozen=True)
class Snapshot:
    """The cluster at one time; all times in seconds of a monotonic clock."""

    now: float
    size: int  #: of the Job
    nodes: Nodes
    need: Need = NOTHING  #: of the queue
    waiting: int = 0  #: jobs
    requested: int = 0  #: by minicluster-scale or the replicas of the Deployment; 0: nothing
    cpu: float | None = None  #: use as a part of the request; None: unknown

    def wishes(self, policy: Policy) -> dict[str, int]:
        """Return the size that each reason asks for."""
        sizes = {"queue": self.need.size, "asked": self.requested, "min": policy.min}
        if policy.cpu_target:
            # what nobody measures may be busy: it counts as on target
            use = policy.cpu_target / 100 if self.cpu is None else self.cpu
            ratio = round(use * 100) / policy.cpu_target  # whole percents, as in HorizontalPodAutoscaler
            sizes["cpu"] = self.size if abs(ratio - 1) <= TOLERANCE_PART else math.ceil(self.size * ratio)
        return sizes


class Decision(NamedTuple):
    """The size that the cluster should have now, and why, in a few words."""

    size: int
    why: str
    wait: float = math.inf  #: seconds after which the cluster grows if nothing changes


@dataclass
class Autoscaler:
    """Remembers since when the cluster is too small or too large. After a restart only the windows begin again."""

    too_small: dict[str, float] = field(default_factory=dict)  #: by reason: since when it asks for a larger size
    too_large: float | None = None  #: since when
    idle: dict[int, float] = field(default_factory=dict)  #: by rank: since when it has no job
    stepped: float = -math.inf  #: when the size last changed

    def decide(self, policy: Policy, snapshot: Snapshot) -> Decision:
        """Return what to do now."""
        wishes = {reason: min(size, policy.max) for reason, size in snapshot.wishes(policy).items()}
        self._remember(snapshot, wishes)
        size = snapshot.size
        if size < policy.min:
            return Decision(policy.min, "autoscaling.min")
        if self.too_small:
            return self._grow(policy, snapshot, wishes)
        wish = max(wishes.values())
        if wish < size:
            return self._shrink(policy, snapshot, wish)
        return Decision(size, "nothing to do")

    def _grow(self, policy: Policy, snapshot: Snapshot, wishes: Mapping[str, int]) -> Decision:
        """Return the largest size that a reason has asked for long enough."""
        size, now = snapshot.size, snapshot.now
        left = {reason: since + policy.backlog - now for reason, since in self.too_small.items()}
        ripe = [reason for reason, seconds in left.items() if seconds <= 0]
        if not ripe:
            reason = min(left, key=lambda key: left[key])
            why = f"waits: {self._why(reason, snapshot)}, for less than {policy.backlog:g} s"
            return Decision(size, why, left[reason])
        if policy.step_up and now - self.stepped < policy.period:
            return Decision(size, STEPPED, self.stepped + policy.period - now)
        reason = max(ripe, key=lambda key: wishes[key])
        grown = min(wishes[reason], size + (policy.step_up or wishes[reason]))
        assert size < grown <= policy.max, f"to grow from {size} to {grown}, of at most {policy.max}"
        return Decision(grown, self._why(reason, snapshot))

    def _shrink(self, policy: Policy, snapshot: Snapshot, wish: int) -> Decision:
        """Return the least size, down to ``wish``, above which all ranks are idle."""
        size, now = snapshot.size, snapshot.now
        if self.too_large is None or now - self.too_large < policy.idle:
            return Decision(size, f"waits: nodes have been idle for less than {policy.idle:g} s")
        if policy.step_down and now - self.stepped < policy.period:
            return Decision(size, STEPPED)
        least = max(wish, size - (policy.step_down or size))
        while size > least and now - self.idle.get(size - 1, math.inf) >= policy.idle:
            size -= 1
        if size == snapshot.size:
            return Decision(size, "waits: the highest nodes have jobs")
        assert policy.min <= size < snapshot.size, f"to shrink from {snapshot.size} to {size}, of at least {policy.min}"
        return Decision(size, f"nodes idle for {policy.idle:g} s")

    def _remember(self, snapshot: Snapshot, wishes: Mapping[str, int]) -> None:
        now, size = snapshot.now, snapshot.size
        self.too_small = {reason: self.too_small.get(reason, now) for reason, wish in wishes.items() if wish > size}
        if "queue" in self.too_small:
            # a single job must have waited that long: many jobs that each wait a moment are no reason to grow
            self.too_small["queue"] = snapshot.need.since
        too_large = max(wishes.values()) < size
        self.too_large = (self.too_large if self.too_large is not None else now) if too_large else None
        self.idle = {rank: self.idle.get(rank, now) for rank in range(size) if rank not in snapshot.nodes.used}

    @staticmethod
    def _why(reason: str, snapshot: Snapshot) -> str:
        if reason == "queue":
            return "1 job waits for nodes" if snapshot.waiting == 1 else f"{snapshot.waiting} jobs wait for nodes"
        if reason == "asked":
            return f"{snapshot.requested} nodes were requested"
        return "autoscaling.min" if reason == "min" else f"CPU use is {snapshot.cpu or 0:.0%} of the request"
