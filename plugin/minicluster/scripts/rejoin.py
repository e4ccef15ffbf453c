"""The rank of a pod that came back takes jobs again, unless somebody else drained it.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import flux
from state import OURS, nodes


def main() -> None:
    """Undrain the rank of this pod's broker."""
    handle = flux.Flux()
    rank = int(handle.attr_get("rank"))
    if nodes(handle).drained.get(rank, "").startswith(OURS):
        handle.rpc("resource.undrain", {"targets": str(rank), "mode": "update"}, nodeid=0).get()


if __name__ == "__main__":
    main()
