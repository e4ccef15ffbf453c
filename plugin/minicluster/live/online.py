"""online.py SIZE MOST MORE: ends when the first SIZE ranks are the online ones of the first MOST; prints their number.

With MORE "true" others may be online too. It prints a number whenever that changes, and ends with its standard input.
Given to `flux python -c` by scale.py. Runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import flux
from flux import constants
from flux.idset import IDset


def main(size: int, most: int, more: bool) -> None:
    """Watch the group of the brokers that are online."""
    handle = flux.Flux()

    def changed(future: Any) -> None:
        online = {rank for rank in IDset(future.get()["members"]) if rank < most}
        print(len(online), flush=True)
        wanted = set(range(size))
        if wanted <= online if more else wanted == online:
            handle.reactor_stop()
        future.reset()

    def closed(*_: Any) -> None:
        if not os.read(0, 1 << 16):
            handle.reactor_stop()

    handle.rpc("groups.get", {"name": "broker.online"}, 0, constants.FLUX_RPC_STREAMING).then(changed)
    with handle.fd_watcher_create(0, closed, constants.FLUX_POLLIN):
        handle.reactor_run()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "true")
