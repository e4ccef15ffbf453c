"""Processes and their descendants, as /proc has them (proc_pid_stat(5)).

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Iterable, Mapping

#: More than a file has that `read` reads
SMALL_BYTES = 8192


#: What a second has of the units of proc_pid_stat(5)
TICKS = os.sysconf("SC_CLK_TCK")


def stats() -> dict[int, bytes]:
    """Return what the kernel tells of each process, after its name; those that have ended are not there."""
    all_of = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - the guard does this each second
        with suppress(OSError):
            stat = read(f"/proc/{pid}/stat").rpartition(b") ")[2]
            if not stat.startswith(b"Z"):
                all_of[int(pid)] = stat
    return all_of


def children(of: Mapping[int, bytes] | None = None) -> dict[int, list[int]]:
    """Return the ids of the children of each process."""
    by_parent: dict[int, list[int]] = {}
    for pid, stat in (stats() if of is None else of).items():
        by_parent.setdefault(int(stat.split(None, 2)[1]), []).append(pid)
    return by_parent


def cpu_seconds(of: Iterable[bytes]) -> float:
    """Return the CPU time that processes and their ended children have had, by what `stats` has of them."""
    return sum(int(ticks) for stat in of for ticks in stat.split(None, 15)[11:15]) / TICKS


def threads(of: Iterable[bytes]) -> int:
    """Return how many threads processes have."""
    return sum(int(stat.split(None, 18)[17]) for stat in of)


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
