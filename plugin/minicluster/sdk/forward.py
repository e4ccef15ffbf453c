"""Forwards a local port to a port of the lead, even when another pod becomes the lead."""

import contextlib
import select
import socket
import socketserver
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from minicluster.console import signals
from minicluster.kube.port import PodConnection
from minicluster.sdk.exceptions import ApiError, ArgumentError, SdkError

#: Seconds that an answer may go on after the client has stopped writing
GRACE_SECONDS = 30.0
#: Seconds in which a pod reports that nothing listens on a port; seconds that `error` waits for connections that begin
REFUSAL_SECONDS, BEGIN_SECONDS = 1.0, 5.0


class PortForward:
    """Listens on this machine and forwards each connection; a context manager."""

    def __init__(
        self, connect: Callable[[], PodConnection], local_port: int = 0, end: Callable[[], None] = lambda: None
    ) -> None:
        """Listen on 127.0.0.1; ``connect`` makes a connection to the pod, or raises SdkError; ``end`` ends them all.

        Raises ArgumentError.
        """
        self._end, self._is_mine = end, True
        try:
            self._server = _Server(connect, local_port)
        except OSError as error:
            raise ArgumentError(f"local_port={local_port} can't be used: {error.strerror}: leave it out") from None
        signals.keep_after_fork(self)
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
        """Why the last connection that failed did so. Waits a moment for connections that have just begun."""
        self._server.settle()
        return self._server.error

    def close(self) -> None:
        """Stop listening, and end the connections."""
        if not self._is_mine:
            return
        self._server.shutdown()
        self._server.server_close()
        self._end()

    def after_fork(self) -> None:
        """Leave it to the parent, in a child."""
        self._is_mine = False
        self._server.server_close()

    def __enter__(self) -> "PortForward":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(socketserver.ThreadingTCPServer):
    """Accepts connections, a thread for each."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, connect: Callable[[], PodConnection], local_port: int) -> None:
        self.connect = connect
        self.error: SdkError | None = None
        self._changed = threading.Condition()
        self._beginning = set[socket.socket]()  #: connections that may yet fail
        super().__init__(("127.0.0.1", local_port), _Connection)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection."""
        request = super().get_request()
        with self._changed:
            self._beginning.add(request[0])
        return request

    def has_begun(self, connection: socket.socket) -> None:
        """Note that a connection works, or has failed and set `error`."""
        with self._changed:
            self._beginning.discard(connection)
            self._changed.notify_all()

    def settle(self) -> None:
        """Wait a moment for the connections that begin, even for one that is not accepted yet."""
        end = time.monotonic() + BEGIN_SECONDS
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
        begun = partial(self.server.has_begun, self.request)
        try:
            pod = self.server.connect()
        except SdkError as error:
            self.server.error = error
            begun()
            return
        timer = threading.Timer(REFUSAL_SECONDS, begun)
        timer.start()
        with contextlib.closing(pod):
            back = threading.Thread(target=self._answer, args=(pod, begun), daemon=True)
            back.start()
            _copy(self.request, pod)
            # the pod doesn't learn that one direction is closed
            back.join(GRACE_SECONDS)
        timer.cancel()
        begun()

    def _answer(self, pod: PodConnection, begun: Callable[[], None]) -> None:
        _copy(pod, self.request, begun)
        if pod.error:
            self.server.error = ApiError(f"the pod refuses the connection: {pod.error}")
        begun()
        with contextlib.suppress(OSError):
            # the other direction ends too
            self.request.shutdown(socket.SHUT_RDWR)


def _copy(
    source: socket.socket | PodConnection,
    target: socket.socket | PodConnection,
    began: Callable[[], None] = lambda: None,
) -> None:
    """Copy until the end; call ``began`` when data has come."""
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            began()
            target.sendall(data)
