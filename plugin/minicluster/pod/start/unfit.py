"""unfit.py: in place of rc1 of a worker's broker, tells the lead why the node stays out (check.sh): drains its rank.

The reason is in MINICLUSTER_UNFIT. It ends with 1, so the broker ends before Flux takes it for a node. Once the rank is
one, the undrainer undrains it.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import flux
from state import CHECK_REASON, MEMORY_REASON, OWN_REASON, unused_nodes


def main(handle: Any, reason: str) -> None:
    """Drain this rank. The drain of a person keeps its reason. Raises OSError."""
    rank = int(handle.attr_get("rank"))
    before = unused_nodes(handle).drained.get(rank, CHECK_REASON)
    if before != reason and before.startswith((CHECK_REASON, MEMORY_REASON, OWN_REASON)):
        drain = {"targets": str(rank), "reason": reason, "mode": "overwrite"}
        handle.rpc("resource.drain", drain, nodeid=0).get()


if __name__ == "__main__":
    # bytes that are no text would not be JSON
    main(flux.Flux(), os.fsencode(os.environ["MINICLUSTER_UNFIT"]).decode(errors="replace"))
    sys.exit(1)
