"""Our standard input for a command that may have to run again, and then reads all of it again."""

import os
import sys
import threading
from contextlib import suppress

#: The most bytes of a pipe that are kept
PIPE_BYTES = 1 << 20


class Input:
    """Our standard input. The data of a pipe is kept, a file is read again, and a terminal just goes on."""

    def __init__(self) -> None:
        """Read nothing yet."""
        self._begin: int | None = None
        with suppress(OSError):
            self._begin = os.lseek(0, 0, os.SEEK_CUR)
        self._is_pipe = self._begin is None and not sys.stdin.isatty()
        self._had, self._is_whole, self._is_over = b"", True, False
        self._lock, self._target = threading.Lock(), -1
        self._reader = threading.Thread(target=self._read, daemon=True)

    def rewind(self) -> bool:
        """Let the next command read all of it again; return whether that is possible."""
        if self._begin is not None:
            os.lseek(0, self._begin, os.SEEK_SET)
        return self._is_whole

    def descriptor(self) -> int | None:
        """Return a descriptor with all of it, for a command's standard input; None: our own. The caller closes it."""
        if not self._is_pipe:
            return None
        theirs, ours = os.pipe()
        threading.Thread(target=self._feed, args=(ours,), daemon=True).start()
        return theirs

    def _feed(self, target: int) -> None:
        with self._lock:
            self._target = target
            self._write(self._had)
            if self._is_over:
                self._close()
            elif not self._reader.is_alive():
                self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):
            while data := os.read(0, 1 << 16):
                with self._lock:
                    self._is_whole = self._is_whole and len(self._had) + len(data) <= PIPE_BYTES
                    self._had = self._had + data if self._is_whole else b""
                    self._write(data)
        with self._lock:
            self._is_over = True
            self._close()

    def _write(self, data: bytes) -> None:
        """Write to the command, unless it has ended."""
        while data and self._target >= 0:
            try:
                data = data[os.write(self._target, data) :]
            except OSError:
                self._close()

    def _close(self) -> None:
        if self._target >= 0:
            os.close(self._target)
        self._target = -1
