"""The records of jobs that have ended, in files of the lead: Flux keeps only the newest ones.

recorder.py writes them, job_report.py reads them.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import errno
import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Iterable, Iterator, Mapping, Sequence

#: Bytes of each of two files: about 45,000 jobs
FILE_BYTES = 32 << 20
#: Bytes at the end of the newer file in which the last jobs are looked up; it may have many jobs inside of one
TAIL_BYTES = 4 << 20


class HistoryError(Exception):
    """Records can't be written; the text says why."""


class History:
    """Two files of lines: when one is full, it takes the place of the older one."""

    def __init__(self, folder: Path) -> None:
        """Take a folder, which need not be there."""
        self.folder = folder
        self.newer, self.older = folder / "jobs.jsonl", folder / "jobs.old.jsonl"

    def append(self, lines: Sequence[str]) -> None:
        """Add lines at the end: all, or none if there is no room. Raises HistoryError."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if self.newer.exists() and self.newer.stat().st_size > FILE_BYTES:
                self.newer.replace(self.older)
            with self.newer.open("a+b", buffering=0) as file:
                self._append(file, "".join(lines).encode("ascii"))
        except OSError as error:
            raise HistoryError(f"jobs that have ended can't be recorded: {error}") from None

    def _append(self, file: BinaryIO, text: bytes) -> None:
        end = file.seek(0, os.SEEK_END)
        # a killed writer may have left half a line
        file.seek(max(0, end - 1))
        if file.read(1) not in (b"", b"\n"):
            text = b"\n" + text
        is_whole = False
        try:
            is_whole = file.write(text) == len(text)
        finally:
            if not is_whole:
                file.truncate(end)
        if not is_whole:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.newer))

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Yield id and line of each job, in the order in which they ended; the id of one inside of another is None."""
        return _complete(self.texts())

    def texts(self) -> Iterator[str]:
        """Yield all lines; some may be cut."""
        for path in (self.older, self.newer):
            with suppress(OSError), path.open(encoding="ascii", errors="replace") as file:
                yield from file

    def find(self, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], dict[str, Any]]]:
        """Yield what a pattern finds in the lines, each with its record. Other lines are not parsed."""
        for text in self.texts():
            match = pattern.search(text)
            if match:
                with suppress(ValueError):
                    yield match, json.loads(text)

    def record(self, number: int) -> dict[str, Any] | None:
        """Return the record of a job by its id, None without one."""
        line = self.find(re.compile(rf'"number": {number}\b'))
        return next((record for _, record in line if record.get("number") == number), None)

    def last(self) -> Mapping[int, Mapping[str, Any]]:
        """Return the last records by their jobs' ids; {} without a file that can be read."""
        path = self.newer if self.newer.exists() else self.older
        try:
            with path.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
                lines = file.read().decode("ascii", errors="replace").split("\n")
        except OSError:
            return {}
        # without jobs inside of others
        return {number: json.loads(text) for number, text in _complete(lines) if number is not None}


def _complete(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that are records; some may be cut."""
    for text in lines:
        with suppress(ValueError, TypeError, KeyError):
            yield json.loads(text)["number"], text


def folder() -> Path:
    """Return the folder of the records; where Flux's state is kept, it is a link to a folder beside that."""
    return Path(os.environ.get("MINICLUSTER_HOME", ""), "config", "run", "history")
