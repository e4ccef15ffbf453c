"""The jobs of the model's queue."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: States of jobs, by the filter of a query
FILTERS = {
    **{name: {name} for name in ("depend", "priority", "sched", "run")},
    "pending": {"depend", "priority", "sched"},
    "running": {"run", "cleanup"},
    "active": {"depend", "priority", "sched", "run", "cleanup"},
    **{name: {name} for name in ("completed", "failed", "canceled", "timeout")},
    "inactive": {"completed", "failed", "canceled", "timeout"},
}


@dataclass
class Job:
    """A job of the queue."""

    number: int
    jobspec: dict[str, Any]
    urgency: int
    lineage: int  #: the job that was submitted first; the others are its copies
    work: float  #: seconds
    taken: float  #: when it was submitted
    state: str = "depend"
    ranks: list[int] = field(default_factory=list)
    after: int | None = None  #: runs when that one has failed
    begins: float = 0.0  #: not before, in seconds of the clock
    runs: int = 0  #: counts its ends, so that an event for an earlier one is none
    result: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    listed: dict[str, Any] = field(default_factory=dict)  #: what job-list knows of it
    listed_at: float = 0.0  #: when it knows all that has happened


class JobID(int):
    """The id of a job, with its text forms."""

    @property
    def f58plain(self) -> str:
        """The id as people see it."""
        return f"f{int(self)}"


def wanted(jobspec: Mapping[str, Any]) -> tuple[int, int]:
    """Return the nodes that a job of ours asks for, and the cores on each."""
    [node] = jobspec["resources"]
    return int(node["count"]), int(node["with"][0]["with"][0]["count"])
