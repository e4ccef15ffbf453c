"""A local port that leads to a port of the lead, whichever pod that is."""

import contextlib
import select
import socket
import socketserver
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from minicluster.sdk.exceptions import ApiError, ArgumentError, SdkError

#: Seconds that an answer may take to end after the client wrote its last
GRACE = 30.0
#: Seconds in which a pod says that nothing listens on a port; for which `error` waits for connections that begin
REFUSAL, PATIENCE = 1.0, 5.0


class Socket(Protocol):
    """What a connection needs of a socket."""

    def recv(self, size: int, /) -> bytes:
        """Return what came, nothing at the end."""

    def sendall(self, data: bytes, /) -> object:
        """Write all."""


class PodConnection(Socket, Protocol):
    """A socket of a pod."""

    def close(self) -> None:
        """Close."""

    @property
    def error(self) -> str:
        """Why the pod gave no connection, known at the end of what it sends; "" when it did."""


class PortForward:
    """Listens on this machine and forwards each connection; a context manager."""

    def __init__(self, connect: Callable[[], PodConnection], local_port: int = 0) -> None:
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
        """Why the last connection that failed did. Connections that have just begun are waited for, for a moment."""
        self._server.settle()
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

    def __init__(self, connect: Callable[[], PodConnection], local_port: int) -> None:
        self.connect = connect
        self.error: SdkError | None = None
        self._changed = threading.Condition()
        self._beginning = 0  #: connections of which it is not known whether they work
        super().__init__(("127.0.0.1", local_port), _Connection)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection."""
        found = super().get_request()
        with self._changed:
            self._beginning += 1
        return found

    def has_begun(self) -> None:
        """Take note that a connection works, or that `error` says why it does not."""
        with self._changed:
            self._beginning -= 1
            self._changed.notify_all()

    def settle(self) -> None:
        """Wait a moment for the connections that begin, also for one that is not accepted yet."""
        end = time.monotonic() + PATIENCE
        with self._changed:
            while time.monotonic() < end and (self._beginning or self._is_called()):
                self._changed.wait(0.05)

    def _is_called(self) -> bool:
        return self.socket.fileno() >= 0 and bool(select.select([self.socket], [], [], 0)[0])


class _Connection(socketserver.BaseRequestHandler):
    """Copies both ways until both ends have closed."""

    server: _Server
    request: socket.socket

    def handle(self) -> None:
        begun = _Once(self.server.has_begun)
        try:
            pod = self.server.connect()
        except SdkError as error:
            self.server.error = error
            begun()
            return
        timer = threading.Timer(REFUSAL, begun)
        timer.start()
        with contextlib.closing(pod):
            back = threading.Thread(target=self._answer, args=(pod, begun), daemon=True)
            back.start()
            _copy(self.request, pod)
            # Kubernetes' stream has no end in one direction alone
            back.join(GRACE)
        timer.cancel()
        begun()

    def _answer(self, pod: PodConnection, begun: "_Once") -> None:
        _copy(pod, self.request, begun)
        if pod.error:
            self.server.error = ApiError(f"the pod gives no connection: {pod.error}")
        begun()
        with contextlib.suppress(OSError):
            # the other direction ends too
            self.request.shutdown(socket.SHUT_RDWR)


class _Once:
    """Calls a function, and never again."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function, self._lock, self._was_called = function, threading.Lock(), False

    def __call__(self) -> None:
        with self._lock:
            was_called, self._was_called = self._was_called, True
        if not was_called:
            self._function()


def _copy(source: Socket, target: Socket, began: Callable[[], None] = lambda: None) -> None:
    """Copy until the end; tell when something has come."""
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            began()
            target.sendall(data)
