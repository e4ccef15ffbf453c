"""The streams of a command that runs in a pod, and its exit code; connections to a port of a pod."""

import json
import math
import select
import socket
import ssl
from contextlib import suppress
from typing import Any

from websocket import ABNF, WebSocketException

from minicluster.errors import AwayError
from minicluster.kube.port import STDERR_BYTES

#: Channels of Kubernetes' protocol (v4.channel.k8s.io, v5.channel.k8s.io)
STDIN, STDOUT, STDERR, ERROR = range(4)
#: Seconds in which a whole frame must be received or sent
FRAME_SECONDS = 30.0


class PodChannel:
    """A command in a pod, through the API server: a `Channel`."""

    def __init__(self, websocket: Any) -> None:
        """Take over a connected WebSocket of the `websocket` package."""
        self._websocket = websocket
        # so that a frame that has begun ends, or the connection counts as lost
        websocket.settimeout(FRAME_SECONDS)
        self.exit_code: int | None = None
        self.stderr = b""

    def wait(self, wake: socket.socket | None, seconds: float | None) -> bool:
        """Wait for output, or for data on the socket ``wake``; return whether there is any within the time."""
        own = self._websocket.sock
        # TLS may hold frames that were read from the socket already
        if own is None or own.fileno() < 0 or (isinstance(own, ssl.SSLSocket) and own.pending()):
            return True
        poll = select.poll()
        for one in (own, wake):
            if one is not None:
                poll.register(one, select.POLLIN)
        return bool(poll.poll(None if seconds in (None, math.inf) else seconds * 1000))

    def read(self) -> bytes | None:
        """Return new standard output, which may be empty; None at the end. Raises AwayError."""
        try:
            kind, frame = self._websocket.recv_data_frame(control_frame=True)
        except (OSError, WebSocketException) as error:
            raise AwayError(f"the connection to the pod broke: {error}") from None
        if kind == ABNF.OPCODE_CLOSE:
            if self.exit_code is None:
                raise AwayError("the connection to the pod was closed")
            return None
        if kind not in (ABNF.OPCODE_TEXT, ABNF.OPCODE_BINARY) or not frame.data:
            return b""
        channel, data = frame.data[0], bytes(frame.data[1:])
        if channel == STDERR:
            self.stderr = (self.stderr + data)[-STDERR_BYTES:]
        elif channel == ERROR:
            self.exit_code = exit_code(data)
        return data if channel == STDOUT else b""

    def write(self, data: bytes) -> None:
        """Write to the command's standard input. Raises AwayError."""
        try:
            self._websocket.send(bytes([STDIN]) + data, opcode=ABNF.OPCODE_BINARY)
        except (OSError, WebSocketException) as error:
            raise AwayError(f"the connection to the pod broke: {error}") from None

    def abort(self) -> None:
        """Let a thread that reads it find the end."""
        with suppress(OSError, AttributeError):
            self._websocket.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the command's standard input, and leave it."""
        _close(self._websocket)


class PodSocket:
    """A connection to a port of a pod, through the API server."""

    def __init__(self, forward: Any, port: int) -> None:
        """Take over what `kubernetes.stream.portforward` returned."""
        self._forward, self._port = forward, port
        self._socket = forward.socket(port)

    @property
    def error(self) -> str:
        """Why the pod refused the connection, for example because nothing listens there; "" if it did not."""
        return str(self._forward.error(self._port) or "")

    def recv(self, size: int, /) -> bytes:
        """Return new data; nothing at the end."""
        data: bytes = self._socket.recv(size)
        return data

    def sendall(self, data: bytes, /) -> None:
        """Write all."""
        self._socket.sendall(data)

    def close(self) -> None:
        """Close it, and its WebSocket, which the client leaves open if the pod closed first."""
        self._socket.close()
        _close(self._forward.websocket)


def _close(websocket: Any) -> None:
    """Close a WebSocket and its socket: if the other side closed first, `close` alone leaves the socket open."""
    websocket.close(timeout=1)
    websocket.shutdown()


def exit_code(status: bytes) -> int:
    """Return the exit code in the Status that Kubernetes sends at the end. Raises AwayError if it has none."""
    found = json.loads(status)
    if found.get("status") == "Success":
        return 0
    for cause in (found.get("details") or {}).get("causes") or []:
        if cause.get("reason") == "ExitCode":
            return int(cause["message"])
    raise AwayError(f"the pod can't run the command: {found.get('message', 'no reason given')}")
