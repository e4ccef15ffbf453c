"""A port of a pod, to which a kubectl forwards one of this machine."""

import re
import socket
import threading
import time
from contextlib import suppress

from minicluster.console import signals
from minicluster.console.lines import Cutter
from minicluster.errors import AwayError, KubernetesError
from minicluster.kube.kubectl_stream import Stream

#: kubectl's line of the port that it listens on
LISTENS = re.compile(rb"Forwarding from 127\.0\.0\.1:(\d+) ")
#: kubectl's words about a connection that failed, in its log, which escapes quotes
FAILED = re.compile(rb"an error occurred forwarding \d+ -> \d+: (.*)")
#: Seconds until kubectl listens; until it has said why a connection ended without an answer
LISTEN_SECONDS, TELLING_SECONDS = 30.0, 1.0


class PodPort:
    """A kubectl that forwards all connections to a port of a pod, until one of them fails: a `Forward`."""

    def __init__(self, pod: str, stream: Stream) -> None:
        """Wait until the kubectl of a stream listens. Raises KubernetesError."""
        self.pod, self._stream = pod, stream
        try:
            self._address = "127.0.0.1", _local_port(stream)
        except BaseException:
            stream.close()
            raise
        # it prints a line for each connection, and a full pipe would stop it
        self._reader = threading.Thread(target=_read_all, args=(stream,), daemon=True)
        self._reader.start()

    @property
    def is_on(self) -> bool:
        """Whether it still forwards."""
        return self._reader.is_alive() and not self.failures

    @property
    def failures(self) -> list[str]:
        """What kubectl has said about connections that failed."""
        failed = FAILED.findall(self._stream.stderr)
        return [said.decode(errors="replace").strip(' "').replace('\\"', '"') for said in failed]

    def connect(self) -> "PodSocket":
        """Return a new connection. Raises AwayError."""
        known = len(self.failures)
        try:
            return PodSocket(self, socket.create_connection(self._address, LISTEN_SECONDS), known)
        except OSError as error:
            raise AwayError(f"kubectl no longer forwards to pod {self.pod}: {error.strerror}") from None

    def close(self) -> None:
        """End kubectl, and the connections."""
        self._stream.abort()
        signals.join(self._reader)
        self._stream.close()


class PodSocket:
    """A connection to a port of a pod: a `PodConnection`."""

    def __init__(self, port: PodPort, connected: socket.socket, failures: int) -> None:
        """Take a connection to the port of this machine, before which so many others had failed."""
        self._port, self._socket, self._failures = port, connected, failures
        self._has_answered = False
        connected.settimeout(None)

    @property
    def error(self) -> str:
        """Why the pod refused the connection, known when it has sent all; "" if it did not."""
        end = time.monotonic() + TELLING_SECONDS
        while not self._has_answered and time.monotonic() < end:
            if said := self._port.failures[self._failures :]:
                return said[-1]
            time.sleep(0.02)
        return ""

    def recv(self, size: int, /) -> bytes:
        """Return new data; nothing at the end."""
        data = self._socket.recv(size)
        self._has_answered = self._has_answered or bool(data)
        return data

    def sendall(self, data: bytes, /) -> None:
        """Write all."""
        self._socket.sendall(data)

    def close(self) -> None:
        """Close it."""
        self._socket.close()


def _local_port(stream: Stream) -> int:
    """Return the port that a kubectl listens on, as soon as it does. Raises KubernetesError."""
    cutter, end = Cutter(), time.monotonic() + LISTEN_SECONDS
    while stream.wait(None, max(0.0, end - time.monotonic())):
        data = stream.read()
        if data is None:
            break
        for line in cutter.take(data):
            if match := LISTENS.match(line):
                return int(match[1])
    raise AwayError("kubectl does not forward the port")


def _read_all(stream: Stream) -> None:
    with suppress(KubernetesError, OSError, ValueError):  # closed meanwhile
        while stream.read() is not None:
            pass
