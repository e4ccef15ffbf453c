"""What a MiniCluster of the simulator is like."""

import itertools
from dataclasses import dataclass
from typing import Any

from tools.simulator.indexed_job import IndexedJob

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
    is_replaced: bool = False  #: whether somebody replaces it now and then
    bursts: tuple[tuple[str, int], ...] = ()  #: names and registered hosts of the bursts that follow the queue
    preemption: tuple[str, ...] = ()  #: AFTER, RUN and LEAVE of undrainer.py

    @property
    def all(self) -> int:
        """The nodes that there may be."""
        return self.most + self.group

    @property
    def groups(self) -> dict[str, range]:
        """The ranks of the groups, and of bursts; the cluster's own is ""."""
        sizes = {"": self.most, **({GROUP: self.group} if self.group else {}), **dict(self.bursts)}
        ends = dict(zip(sizes, itertools.accumulate(sizes.values()), strict=True))
        return {name: range(ends[name] - size, ends[name]) for name, size in sizes.items()}

    def jobs(self) -> dict[str, IndexedJob]:
        """Return the Jobs by their names; groups have no pods yet, and bursts have no Job."""
        bursts = dict(self.bursts)
        jobs = {}
        for name, ranks in self.groups.items():
            job = name if name in bursts else f"mc-{name}" if name else "mc"
            jobs[job] = IndexedJob(ranks, None if name in bursts else 0 if name else self.least)
        return jobs

    def as_read(self) -> dict[str, Any]:
        """Return the settings that the agent reads."""
        policy = {"min": self.least, "max": self.most, "backlog": self.backlog, "idle": self.idle}
        policy |= {"suspend": self.suspend, "step_down": self.step_down}
        limits = {"min": 0, "max": self.group, "priority": -1}
        groups = [{"name": GROUP, "max_size": self.group, "size": 0, "policy": limits}] if self.group else []
        own = {"name": "mc", "namespace": "ns", "size": self.least, "max_size": self.most, "groups": groups}
        budget = {"always_lead": False} if self.has_budget else None
        return {**own, "period": self.period, "policy": policy, "budget": budget, "port": None}
