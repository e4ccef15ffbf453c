"""A Job of the model's API server, and what it makes of a patch."""

import copy
from collections.abc import Mapping
from typing import Any


class IndexedJob:
    """A Job, and its disruption budget."""

    def __init__(self, ranks: range, size: int) -> None:
        self.ranks = ranks  #: those of its pods
        self.manifest: dict[str, Any] = {
            "metadata": {"uid": "u", "resourceVersion": "1", "annotations": {}, "labels": {}, "managedFields": []},
            "spec": {
                "completions": size or len(ranks) + 1,
                "parallelism": size,
                "suspend": False,
                "template": {"metadata": {}, "spec": {}},
            },
        }
        self.budget: dict[str, Any] = {"metadata": {"resourceVersion": "1"}, "spec": {}}

    @property
    def size(self) -> int:
        """The pods that it is to have."""
        return 0 if self.manifest["spec"]["suspend"] else int(self.manifest["spec"]["parallelism"])

    def has(self, rank: int) -> bool:
        """Tell whether it is to have the pod of a rank."""
        return rank in self.ranks[: self.size]


def merge(thing: dict[str, Any], change: Mapping[str, Any]) -> None:
    """Apply a merge patch (RFC 7386)."""
    for key, value in change.items():
        if value is None:
            thing.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(thing.get(key), dict):
            merge(thing[key], value)
        else:
            thing[key] = copy.deepcopy(value)
