"""What a MiniCluster of the simulator is like."""

from dataclasses import dataclass
from typing import Any

#: The name of a group
GROUP = "more"


@dataclass(frozen=True)
class Setting:
    """What a MiniCluster is like."""

    least: int = 1
    most: int = 6
    cores: int = 2
    backlog: float = 5.0
    idle: float = 30.0
    suspend: float = 0.0
    step_down: int = 0
    period: float = 15.0
    has_budget: bool = True
    group: int = 0  #: the most nodes of a group, 0 for none; it may have none
    quota: int = 0  #: the pods that Kueue lets run; 0 where there is no Kueue
    preemption: tuple[str, ...] = ()  #: AFTER, RUN and LEAVE of undrainer.py

    @property
    def all(self) -> int:
        """The nodes that there may be."""
        return self.most + self.group

    @property
    def groups(self) -> dict[str, range]:
        """The ranks of the groups; the cluster's own is ""."""
        groups = {"": range(self.most)}
        return {**groups, GROUP: range(self.most, self.all)} if self.group else groups

    def as_read(self) -> dict[str, Any]:
        """Return the settings that the agent reads."""
        policy = {"min": self.least, "max": self.most, "backlog": self.backlog, "idle": self.idle}
        policy |= {"suspend": self.suspend, "step_down": self.step_down}
        limits = {"min": 0, "max": self.group, "priority": -1}
        groups = [{"name": GROUP, "max_size": self.group, "size": 0, "policy": limits}] if self.group else []
        own = {"name": "mc", "namespace": "ns", "size": self.least, "max_size": self.most, "groups": groups}
        budget = {"always_lead": False} if self.has_budget else None
        return {**own, "period": self.period, "policy": policy, "budget": budget, "port": None}
