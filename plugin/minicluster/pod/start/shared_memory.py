"""Shared memory that outlives its processes: files in /dev/shm (shm_overview(7)) and System V segments (shmget(2)).

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Iterable, Iterator, NamedTuple

from node_jobs import PROC, is_here

SHM_FOLDER = "/dev/shm"  # noqa: S108 - where the C library has it
#: What a process has mapped: a name in the folder, or the id of a segment (proc_pid_maps(5))
MAPPED = r"{}/([^/\n]+)|(\d+) +/SYSV[0-9a-f]{{8}}"
#: What the kernel adds to the path of a file that was removed
UNLINKED = " (deleted)"


class Piece(NamedTuple):
    """A file or folder in /dev/shm, or a segment."""

    name: str  #: that of the file; "" for a segment
    number: int  #: the file's inode, or the id of the segment

    @property
    def key(self) -> str:
        """What `users` calls it."""
        return self.name or str(self.number)

    def made(self) -> tuple[float, float]:
        """Return between which times it was made or changed last, in seconds since the epoch. Raises OSError."""
        if self.name:
            seconds = os.lstat(f"{SHM_FOLDER}/{self.name}").st_ctime
            return seconds, seconds
        seconds = _segment(self.number)["ctime"]
        return seconds, seconds + 1

    def size(self) -> int:
        """Return its bytes of memory; 0 once it is gone."""
        with suppress(OSError):
            return _size(f"{SHM_FOLDER}/{self.name}") if self.name else _segment(self.number)["rss"]
        return 0

    def remove(self) -> None:
        """Remove it. Raises OSError."""
        if not self.name:
            _remove_segment(self.number)
            return
        path = Path(SHM_FOLDER, self.name)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def pieces() -> set[Piece]:
    """Return all pieces, but not the segments that other containers of the pod have made."""
    with os.scandir(SHM_FOLDER) as entries:
        pieces_there = {Piece(entry.name, entry.inode()) for entry in entries}
    return pieces_there | {Piece("", each["shmid"]) for each in _segments() if each["cpid"]}


def users() -> dict[str, set[int]] | None:
    """Return the processes that have a piece open or mapped, by its key; None if that can't be known of one of them."""
    by_piece: dict[str, set[int]] = {}
    for folder in PROC.glob("[0-9]*"):
        pid = int(folder.name)
        try:
            for key in used_by(pid):
                by_piece.setdefault(key, set()).add(pid)
        except PermissionError:
            if is_here(pid):
                return None
    for each in _segments():
        if each["nattch"]:
            by_piece.setdefault(str(each["shmid"]), set())
    return by_piece


def used_by(pid: int) -> Iterator[str]:
    """Yield the keys of the pieces that a process has open or mapped. Raises PermissionError."""
    pattern = re.compile(MAPPED.format(re.escape(SHM_FOLDER)))
    try:
        text = (PROC / f"{pid}/maps").read_text(errors="surrogateescape")
        for name, segment in pattern.findall(text):
            yield name[: -len(UNLINKED)] if name.endswith(UNLINKED) else name or segment
        for link in (*(PROC / f"{pid}/fd").iterdir(), PROC / f"{pid}/cwd"):
            with suppress(FileNotFoundError):
                yield from (name for name, _ in pattern.findall(os.readlink(link)) if name)
    except (FileNotFoundError, ProcessLookupError):
        return  # it has ended


def all_used_by(pids: Iterable[int]) -> set[str]:
    """Return the keys of the pieces that some processes have open or mapped, as far as that is known."""
    names: set[str] = set()
    for pid in pids:
        with suppress(PermissionError):
            names.update(used_by(pid))
    return names


def since_start(epoch: float, uptime: float) -> float:
    """Return seconds since the epoch as those of the machine's uptime, which is given for now."""
    return epoch - time.time() + uptime


def _size(path: str) -> int:
    total = os.lstat(path).st_blocks * 512
    with suppress(NotADirectoryError), os.scandir(path) as entries:
        total += sum(_size(entry.path) for entry in entries)
    return total


def _segments() -> Iterator[dict[str, int]]:
    """Yield the segments (proc_sysvipc(5)); where the kernel has none, there is no file."""
    with suppress(FileNotFoundError):
        names, *lines = (PROC / "sysvipc/shm").read_text().split("\n")
        for line in filter(None, lines):
            # the permissions are octal
            yield dict(zip(names.split(), map(int, line.split())))


def _segment(number: int) -> dict[str, int]:
    segment = next((each for each in _segments() if each["shmid"] == number), None)
    if not segment:
        raise FileNotFoundError
    return segment


def _remove_segment(number: int) -> None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    remove = 0  # IPC_RMID
    if libc.shmctl(number, remove, None) < 0:
        raise OSError(ctypes.get_errno(), "shmctl")
