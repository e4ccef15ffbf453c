"""Whether Flux can save its state: on a full volume it runs on in memory, and says so only in errors of its log.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
from typing import Any

#: Bytes that SQLite needs to go on
ROOM_BYTES = 1 << 20
#: The part of a claim that is free when there is still time to do something
FREE_PART = 0.1


def problem(handle: Any) -> str:
    """Return why Flux's state is not saved, or soon will not be, and the way out; "" if all is well. Raises OSError."""
    folder = state_folder(handle)
    free, size = space(folder)
    if free < ROOM_BYTES:
        return (
            f"the volume of Flux's state is full, {free >> 20} of {size >> 20} MiB are free in {folder}: free space "
            "there or raise state.capacity; running jobs go on, new ones may hang, and what comes from now on is lost "
            "with the lead's broker"
        )
    stats = handle.rpc("content.stats-get", {}).get()
    # while Flux saves, a batch is on its way; older ones don't say it
    if stats.get("dirty", 0) and not stats.get("flush-batch-count", 1):
        return (
            f"Flux's state is not saved since its volume {folder} was full, Flux does not try again, and a new job may "
            "hang: save what came since by `flux dump FILE`, then delete the lead's pod"
        )
    # without a claim the volume is the disk of the Kubernetes node, which others fill too
    if free < FREE_PART * size and folder.startswith(f"{os.environ.get('MINICLUSTER_HOME')}/state/"):
        # without numbers that change: the log has each new text
        return (
            f"more than {1 - FREE_PART:.0%} of the volume of Flux's state are used, {size >> 20} MiB in {folder}: free "
            "space there or raise state.capacity; when it is full, what comes then is lost with the lead's broker"
        )
    return ""


def state_folder(handle: Any) -> str:
    """Return the folder in which Flux keeps its state. Raises OSError."""
    try:
        return str(handle.attr_get("statedir"))
    except OSError:
        # an older Flux has none unless it is asked for
        return str(handle.attr_get("rundir"))


def space(folder: str) -> tuple[int, int]:
    """Return the bytes that are free on a folder's volume, and these with those that are used. Raises OSError."""
    stat = os.statvfs(folder)
    # as df counts: what the file system keeps for others is neither
    return stat.f_bavail * stat.f_frsize, (stat.f_blocks - stat.f_bfree + stat.f_bavail) * stat.f_frsize
