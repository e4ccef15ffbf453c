"""What remote.py, a client's only program, reads and writes: requests and replies, a JSON object on a line each.

A write never blocks: the client may send a thousand jobs before it reads, and the program has to read them meanwhile.
Signs of life come from a thread of their own, because a busy Flux may take longer for an answer than the client waits.
A module of that program: runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from typing import Any, Callable

from flux import constants

#: Seconds between two signs of life
ALIVE_SECONDS = 5.0
#: Seconds in which a killed program ends; the bytes of struct ucred (unix(7)); the name of this program
FORMER_SECONDS, CREDENTIALS_BYTES = 0.05, struct.calcsize("3i")
OWN_NAME = []  # type: list[socket.socket]


def end_former(client: str) -> None:
    """Be the only program of a client: one whose connection was cut may still submit what it has read.

    It has a name of Linux' abstract sockets, which the kernel frees at its end. Raises OSError.
    """
    name = f"\0minicluster-{client}"
    own = socket.socket(socket.AF_UNIX)
    OWN_NAME.append(own)
    while True:
        try:
            own.bind(name)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            own.listen(1)
            return
        with socket.socket(socket.AF_UNIX) as other, suppress(ConnectionRefusedError, ProcessLookupError):
            other.connect(name)
            number, *_ = struct.unpack("3i", other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS_BYTES))
            os.kill(number, signal.SIGKILL)
        time.sleep(FORMER_SECONDS)


def read_requests(handle: Any, do: Callable[[Any], object]) -> Any:
    """Return a watcher that does each request on standard input, and ends the program when there are no more."""
    rest = [b""]

    def readable(*_: Any) -> None:
        data = os.read(0, 1 << 16)
        if not data:
            handle.reactor_stop()
        *lines, rest[0] = (rest[0] + data).split(b"\n")
        for line in lines:
            do(json.loads(line))

    return handle.fd_watcher_create(0, readable, constants.FLUX_POLLIN)


class Replies:
    """Standard output, with what it can't take yet."""

    def __init__(self, handle: Any) -> None:
        self.file, self.rest, self.lock = sys.stdout.fileno(), bytearray(), threading.Lock()
        os.set_blocking(self.file, False)
        self.watcher = handle.fd_watcher_create(self.file, self._write, constants.FLUX_POLLOUT)
        threading.Thread(target=self._live, args=(threading.Event(),), daemon=True).start()

    def __call__(self, **answer: Any) -> None:
        """Write a reply, now or as soon as the client reads. Raises BrokenPipeError."""
        with self.lock:
            self.rest += json.dumps(answer).encode() + b"\n"
        self._write()

    def refuse(self, key: str, error: Exception) -> None:
        """Say why a request can't be done."""
        self(key=key, error=getattr(error, "strerror", None) or str(error))

    def _write(self, *_: Any) -> None:
        with self.lock:
            self._write_now()
            if self.rest:
                self.watcher.start()
            else:
                self.watcher.stop()

    def _write_now(self) -> None:
        with suppress(BlockingIOError):
            del self.rest[: os.write(self.file, self.rest)]

    def _live(self, never: threading.Event) -> None:
        """Write signs of life, or replies that wait to be written. This thread leaves the watcher alone."""
        with suppress(BrokenPipeError):
            while not never.wait(ALIVE_SECONDS):
                with self.lock:
                    self.rest = self.rest or bytearray(b'{"alive": true}\n')
                    self._write_now()
