"""Nodes that get no more jobs, and those that do again.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
from typing import Any, Collection

from offers import undrain
from state import Nodes, to_idset

#: Why the agent drains nodes; its new life, or a new lead, undoes what it drained
REASON = "minicluster: scaling down"


def drain(handle: Any, ranks: Collection[int]) -> None:
    """Let no more jobs start on ranks, for REASON. A rank that is drained already keeps its reason. Raises OSError."""
    if ranks:
        targets = {"targets": to_idset(ranks), "reason": REASON, "mode": "update"}
        handle.rpc("resource.drain", targets, nodeid=0).get()


def undrain_ours(handle: Any, nodes: Nodes, size: int, own: float = math.inf) -> None:
    """Let jobs start again on the ranks that were drained for REASON: those below ``size``, and those of bursts.

    The first ``own`` ranks are the cluster's own. Raises OSError.
    """
    ours = [rank for rank, reason in nodes.drained.items() if reason == REASON]
    undrain(handle, [rank for rank in ours if not size <= rank < own])
