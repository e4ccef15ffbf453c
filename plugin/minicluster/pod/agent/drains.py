"""Drains nodes that are about to leave, and undrains those that stay.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Collection, Container

from offers import undrain
from state import CHECK_REASON, MEMORY_REASON, Nodes, to_idset

#: The reason of the agent's drains. After a restart, the agent or a new lead undrains these nodes
SHRINK_REASON = "minicluster: scaling down"


@dataclass(frozen=True)
class RanksWithoutPods:
    """Ranks in ranges: there may be 100,000, and no look walks through them."""

    ranges: tuple[range, ...]

    def __contains__(self, rank: object) -> bool:
        return any(rank in each for each in self.ranges)


def drain(handle: Any, ranks: Collection[int]) -> None:
    """Let no more jobs start on ranks, with SHRINK_REASON. A drained rank keeps its own reason. Raises OSError."""
    if ranks:
        targets = {"targets": to_idset(ranks), "reason": SHRINK_REASON, "mode": "update"}
        handle.rpc("resource.drain", targets, nodeid=0).get()


def undrain_ours(handle: Any, nodes: Nodes, gone: Container[int], leaving: Container[int] = ()) -> None:
    """Undrain the ranks that were drained with SHRINK_REASON, but for those that have no pod now or are ``leaving``.

    Of those whose check failed, or whose memory was short, the ones without a pod: the next pod decides.
    Raises OSError.
    """
    stays = [rank for rank, reason in nodes.drained.items() if reason == SHRINK_REASON and rank not in gone]
    ours = [rank for rank in stays if rank not in leaving]
    unfit = (CHECK_REASON, MEMORY_REASON)
    out = [rank for rank, reason in nodes.drained.items() if reason.startswith(unfit) and rank in gone]
    undrain(handle, ours + out)
