"""Processes and their descendants, as /proc has them (proc_pid_stat(5)).

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Iterable, Mapping


def children() -> dict[int, list[int]]:
    """Return the ids of the children of each process; those that have ended are not there."""
    by_parent: dict[int, list[int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent, *_ = file.read_text(errors="replace").rpartition(")")[2].split()
            if state != "Z":
                by_parent.setdefault(int(parent), []).append(int(file.parent.name))
    return by_parent


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
