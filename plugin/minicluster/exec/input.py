"""Standard input, or a file, for a command that may not read all of it, or runs again and reads on from a place."""

import os
import sys
import threading
from contextlib import suppress
from typing import IO

#: The most bytes of a pipe that are kept
PIPE_BYTES = 1 << 20
#: The most bytes that are read at once
READ_BYTES = 1 << 16


class Input:
    """An input. The data of a pipe is kept, a file is read again, and a terminal is the command's own."""

    def __init__(self, file: IO[bytes] | None = None) -> None:
        """Take a file; None: our standard input."""
        self._file = file
        self._own = file.fileno() if file else 0
        self._begin: int | None = None
        with suppress(OSError):
            self._begin = os.lseek(self._own, 0, os.SEEK_CUR)
        self.is_fed = self._begin is not None or not sys.stdin.isatty()  #: else a command gets the terminal itself
        self.count = 0  #: of the bytes that were read
        self.place = 0  #: from which the next command gets it
        self._kept = b""  # the last of them
        self._lock = threading.Lock()
        self._feed: _Feed | None = None

    def has(self, place: int) -> bool:
        """Return whether all can be read from a place on."""
        return self._begin is not None or not self.is_fed or self.count - len(self._kept) <= place

    def descriptor(self) -> int | None:
        """Return a descriptor with all from the place on, for the next command; None: our own. The caller closes it."""
        if not self.is_fed:
            return None
        theirs, ours = os.pipe()
        self._feed = _Feed(self, ours, self.place)
        return theirs

    def end(self) -> None:
        """Let the command find the end of its input: it needs no more."""
        if self._feed:
            self._feed.close()

    def read(self, place: int) -> bytes:
        """Return some bytes from a place on, as soon as there are any; none at the end."""
        if self._begin is not None:
            data = os.pread(self._own, READ_BYTES, self._begin + place)
            self.count = max(self.count, place + len(data))
            return data
        # one reader at a time: what that of a former command still gets is kept for the next
        with self._lock:
            if place == self.count:
                data = os.read(self._own, READ_BYTES)
                self.count += len(data)
                self._kept = (self._kept + data)[-PIPE_BYTES:]
            return self._kept[place - self.count + len(self._kept) :]


class _Feed:
    """Writes the input to one command until it has ended."""

    def __init__(self, source: Input, target: int, place: int) -> None:
        self._source, self._target, self._place = source, target, place
        self._lock, self._is_closed = threading.Lock(), False
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with suppress(OSError):  # nobody reads it any more; or our own can't be read
            while data := self._source.read(self._place):
                with self._lock:
                    while data and not self._is_closed:
                        written = os.write(self._target, data)
                        self._place += written
                        data = data[written:]
                    if self._is_closed:
                        return
        self.close()

    def close(self) -> None:
        """Write no more."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                os.close(self._target)
