"""The agent's log, those of the lead's broker and programs, and the problems of all, which `minicluster status` shows.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterable

#: Bytes of the broker's log from which on it is moved; a file beside it has as much
LOG_BYTES = 1 << 20


def log(text: str) -> None:
    """Write a line of the log."""
    print(f"minicluster-agent: {text}", file=sys.stderr, flush=True)


def tell(problem: str, told: str) -> str:
    """Print a problem to the lead's log when it is new, and return it."""
    if problem not in ("", told):
        print(f"minicluster: {problem}", flush=True)
    return problem


def shorten(file: Path) -> None:
    """Move what a long log has to FILE.old. Its broker goes on writing to the same file, at its new end."""
    # there is none if all of it is on standard error
    with suppress(OSError):
        if file.stat().st_size > LOG_BYTES:
            try:
                shutil.copyfile(file, file.with_name(f"{file.name}.old"))
            finally:
                os.truncate(file, 0)


@dataclass
class Once:
    """Logs a line only when it is new."""

    logged: dict[str, str] = field(default_factory=dict)  #: the last line about each subject
    failing: dict[str, str] = field(default_factory=dict)  #: what can't be done now, by subject

    def log(self, text: str, about: str = "size") -> None:
        """Log a line unless it is the last one about its subject. "" logs nothing and ends the repetition."""
        if text != self.logged.get(about, ""):
            self.logged[about] = text
            if text:
                log(text)

    def fail(self, text: str, about: str) -> None:
        """Log what can't be done, and keep it as a problem until "" says that it can."""
        self.log(text, about)
        self.failing.pop(about, None)
        if text:
            self.failing[about] = text


@dataclass
class Problems:
    """The file from which `minicluster status` has what a program can't do (state.py), a line for each."""

    file: Path
    written: str | None = None  #: None: nothing yet, and an earlier program may have left a file

    def write(self, texts: Iterable[str]) -> None:
        """Write the problems if they are new. On a full disk the next look tries again."""
        lines = "".join(f"{' '.join(text.split())}\n" for text in texts)
        if lines == self.written:
            return
        new = self.file.with_name(f"{self.file.name}.new")
        with suppress(OSError):
            new.write_text(lines, encoding="utf-8")
            new.replace(self.file)
            self.written = lines
