"""A local port that leads to a port of the lead, whichever pod that is."""

import contextlib
import socket
import socketserver
import threading
from collections.abc import Callable
from typing import Protocol

from minicluster.sdk.errors import ArgumentError, SdkError

#: Seconds that an answer may take to end after the client wrote its last
GRACE = 30.0


class Stream(Protocol):
    """What a connection needs of a socket."""

    def recv(self, size: int, /) -> bytes:
        """Return what came, nothing at the end."""

    def sendall(self, data: bytes, /) -> object:
        """Write all."""

    def close(self) -> None:
        """Close."""


class PortForward:
    """Listens on this machine and forwards each connection; a context manager."""

    def __init__(self, connect: Callable[[], Stream], local_port: int = 0) -> None:
        """Listen on 127.0.0.1; ``connect`` makes a socket to the pod, or raises SdkError. Raises ArgumentError."""
        try:
            self._server = _Server(connect, local_port)
        except OSError as error:
            raise ArgumentError(f"local_port={local_port} can't be used: {error.strerror}: leave it out") from None
        threading.Thread(target=self._server.serve_forever, name="minicluster-forward", daemon=True).start()

    @property
    def port(self) -> int:
        """The local port."""
        return int(self._server.server_address[1])

    @property
    def address(self) -> str:
        """The local address, ``127.0.0.1:PORT``."""
        return f"127.0.0.1:{self.port}"

    @property
    def error(self) -> SdkError | None:
        """Why the last connection that failed did."""
        return self._server.error

    def close(self) -> None:
        """Listen no longer; connections that are there go on."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> "PortForward":
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


class _Server(socketserver.ThreadingTCPServer):
    """Accepts connections, a thread for each."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, connect: Callable[[], Stream], local_port: int) -> None:
        self.connect = connect
        self.error: SdkError | None = None
        super().__init__(("127.0.0.1", local_port), _Connection)


class _Connection(socketserver.BaseRequestHandler):
    """Copies both ways until both ends have closed."""

    server: _Server
    request: socket.socket

    def handle(self) -> None:
        try:
            pod = self.server.connect()
        except SdkError as error:
            self.server.error = error
            return
        with contextlib.closing(pod):
            back = threading.Thread(target=self._answer, args=(pod,), daemon=True)
            back.start()
            _copy(self.request, pod)
            # Kubernetes' stream has no end in one direction alone
            back.join(GRACE)

    def _answer(self, pod: Stream) -> None:
        _copy(pod, self.request)
        with contextlib.suppress(OSError):
            # the other direction ends too
            self.request.shutdown(socket.SHUT_RDWR)


def _copy(source: Stream, target: Stream) -> None:
    """Copy until the end."""
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
