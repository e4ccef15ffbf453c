"""Processes and their descendants, as /proc has them (proc_pid_stat(5)).

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Iterable, Mapping

#: More than a file has that `read` reads
SMALL_BYTES = 8192


def children() -> dict[int, list[int]]:
    """Return the ids of the children of each process; those that have ended are not there."""
    by_parent: dict[int, list[int]] = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - the guard does this each second
        with suppress(OSError):
            state, parent, _ = read(f"/proc/{pid}/stat").rpartition(b")")[2].split(None, 2)
            if state != b"Z":
                by_parent.setdefault(int(parent), []).append(int(pid))
    return by_parent


def read(path: str) -> bytes:
    """Return a small file of the kernel, for a fifth of what `Path` takes. Raises OSError."""
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, SMALL_BYTES)
    finally:
        os.close(file)


def descendants(first: Iterable[int], of: Mapping[int, list[int]]) -> list[int]:
    """Return processes and all their descendants, each once."""
    pids = list(dict.fromkeys(first))
    for each in pids:
        pids += [child for child in of.get(each, []) if child not in pids]
    return pids


def send_to_all(pids: Iterable[int], number: int) -> None:
    """Send a signal to processes that may have ended."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
