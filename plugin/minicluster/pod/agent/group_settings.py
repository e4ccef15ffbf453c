"""The groups of nodes that the agent's settings name, with the cluster's own as the first. Each has a Job.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple


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
