"""The files that a job writes its output to, on the first of its nodes: read through Flux, and followed to their end.

A module of printed.py: runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import re
import subprocess
from threading import Event, Thread
from typing import IO, Any, Mapping

#: Prints a file from a byte on; a path that is no file, such as /dev/null, has nothing
TAIL_FILE = 'if [ -f "$1" ]; then exec tail -c "+$2" "$1"; fi; [ -e "$1" ]'

#: Between two looks at a file that grows
FOLLOW_SECONDS = 0.5


def first_rank(resources: Mapping[str, Any]) -> str:
    """Return the rank of the first node of an R (RFC 20)."""
    match = re.search(r"\d+", resources["execution"]["R_lite"][0]["rank"])
    assert match, "an R_lite has ranks"
    return match[0]


class OutputFile:
    """A file, which is copied to a stream."""

    def __init__(self, rank: str, path: str, stream: IO[bytes]) -> None:
        self.rank, self.path, self.stream, self.copied = rank, path, stream, 0
        self._ended = Event()
        self._follower = Thread(target=self._follow, daemon=True)

    def follow(self) -> None:
        """Copy what is in it, and what comes."""
        self._follower.start()

    def finish(self) -> bool:
        """Copy what is left of it, when nobody writes to it any more; return whether it could be read."""
        self._ended.set()
        if self._follower.ident:
            self._follower.join()
        return self._copy()

    def _follow(self) -> None:
        # `flux exec` holds back what a `tail -f` prints
        while not self._ended.wait(FOLLOW_SECONDS):
            self._copy()

    def _copy(self) -> bool:
        line = ["flux", "exec", "--noinput", "-r", self.rank, "/bin/sh", "-c", TAIL_FILE, "sh", self.path]
        line.append(str(self.copied + 1))
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # noqa: S603 - words, no shell
        pipe = process.stdout
        assert pipe, "it was started with a pipe"
        for data in iter(lambda: pipe.read1(1 << 16), b""):  # type: ignore[attr-defined]
            self.stream.write(data)
            self.stream.flush()
            self.copied += len(data)
        return process.wait() == 0
