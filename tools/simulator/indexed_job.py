"""A Job of the model's API server, and what it makes of a patch."""

import copy
from collections.abc import Mapping
from typing import Any

#: An image that no registry has
NO_IMAGE = "none"


class IndexedJob:
    """A Job, which somebody may remove and make again, and its disruption budget."""

    def __init__(self, ranks: range, size: int | None) -> None:
        """Take the ranks of its pods; without a size it is yet to be made."""
        self.ranks = ranks
        self.record: Mapping[str, str] = {}  #: its immutable values
        self.times = 0  #: how often it was made
        self.manifest: dict[str, Any] = {}
        self.budget: dict[str, Any] = {"metadata": {"resourceVersion": "1"}, "spec": {}}
        self.make(size or 0, {})
        self.is_there = size is not None
        self.has_ended = False

    def make(self, size: int, record: Mapping[str, str]) -> None:
        """Make it."""
        self.record, self.is_there, self.has_ended = record, True, False
        self.times += 1
        metadata = {"uid": f"u{self.times}", "resourceVersion": "1", "annotations": {}, "labels": {}}
        self.manifest = {
            "metadata": {**metadata, "managedFields": []},
            "spec": {
                "completions": size or len(self.ranks) + 1,
                "parallelism": size,
                "suspend": False,
                "template": {"metadata": {}, "spec": {}},
            },
        }

    @property
    def is_leaving(self) -> bool:
        """Whether somebody has deleted it, and its pods are not gone yet."""
        return "deletionTimestamp" in self.manifest["metadata"]

    @property
    def can_start(self) -> bool:
        """Whether its image exists."""
        return self.record.get("image") != NO_IMAGE

    @property
    def size(self) -> int:
        """The pods that it is to have."""
        is_none = not self.is_there or self.has_ended or self.is_leaving or self.manifest["spec"]["suspend"]
        return 0 if is_none else int(self.manifest["spec"]["parallelism"])

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
