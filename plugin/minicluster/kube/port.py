"""The port to Kubernetes: all that is asked of a namespace."""

import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self

from minicluster.kube import tool

Object = Mapping[str, Any]
#: Seconds that a request has; seconds that it has at least, even when the deadline is near
ANSWER_SECONDS, SHORTEST_SECONDS = 30.0, 1.0
#: Seconds until a change is looked for in any case
WATCH_SECONDS = 30.0
#: The most that is kept of a command's standard error, which is always read: a full pipe would stop the command
STDERR_BYTES = 1 << 16


class Sight(NamedTuple):
    """A Job and some of its pods at one time."""

    job: Object  #: empty when there is none
    pods: Object  #: a list


class PodConnection(Protocol):
    """A connection to a port of a pod."""

    @property
    def error(self) -> str:
        """Why the pod refused the connection, known when it has sent all; "" if it did not."""

    def recv(self, size: int, /) -> bytes:
        """Return new data; nothing at the end."""

    def sendall(self, data: bytes, /) -> object:
        """Write all."""

    def close(self) -> None:
        """Close."""


class Channel(Protocol):
    """A command that runs in a pod; one thread reads it."""

    exit_code: int | None  #: None until the command has ended
    stderr: bytes  #: the end of its standard error, when the command has ended

    def wait(self, wake: socket.socket | None, seconds: float | None) -> bool:
        """Wait for output, or for data on the socket ``wake``; return whether there is any within the time."""

    def read(self) -> bytes | None:
        """Return new standard output, which may be empty; None at the end. Raises RefusedError, AwayError."""

    def write(self, data: bytes) -> None:
        """Write to the command's standard input. Raises AwayError."""

    def abort(self) -> None:
        """Let a thread that reads it find the end."""

    def close(self) -> None:
        """Close the command's standard input, and leave it."""


class Forward(Protocol):
    """A port of this machine that leads to one of a pod."""

    pod: str  #: its name

    @property
    def is_on(self) -> bool:
        """Whether it still leads there."""

    def connect(self) -> PodConnection:
        """Return a new connection. Raises AwayError."""

    def close(self) -> None:
        """End it, and its connections."""


@dataclass(frozen=True)
class KubePort(ABC):
    """A namespace of a cluster, and a context of the kubeconfig: an empty one is the kubeconfig's current one.

    Each method that asks raises RefusedError, or AwayError without an answer.
    """

    context: str = ""
    namespace: str = ""
    was_current: bool = False  #: whether nobody asked for the context: it was the current one
    is_apart: bool = False  #: whether a terminal's Ctrl-C doesn't reach the commands, so that they run to their end
    limit: float | None = None  #: seconds that all requests have together
    deadline: float | None = None  #: when these are over, by the monotonic clock
    stop: threading.Event | None = None  #: ends waits early

    @property
    def asked_context(self) -> str:
        """The context that messages name; "" for the one that was current."""
        return "" if self.was_current else self.context

    def within(self, seconds: float | None, stop: threading.Event | None = None) -> Self:
        """Return the same with a deadline, in that many seconds; None sets none. An earlier one stays.

        ``stop`` ends waits early when it is set.
        """
        stop = stop or self.stop
        if seconds is None or self.left(seconds) < seconds:
            return replace(self, stop=stop)
        return replace(self, limit=seconds, deadline=time.monotonic() + seconds, stop=stop)

    def left(self, most: float) -> float:
        """Return the seconds until the deadline, at most ``most`` and at least 0."""
        return most if self.deadline is None else max(0.0, min(most, self.deadline - time.monotonic()))

    def request_seconds(self, most: float = ANSWER_SECONDS) -> float:
        """Return the seconds that a request has until the deadline, at most ``most`` and at least SHORTEST_SECONDS."""
        return min(most, max(SHORTEST_SECONDS, self.left(most)))

    @property
    def is_late(self) -> bool:
        """Whether the deadline is over, or a wait is to end."""
        is_over = self.deadline is not None and time.monotonic() >= self.deadline
        return is_over or bool(self.stop and self.stop.is_set())

    def helm(self, *words: str, stdin: str = "", seconds: float = tool.HELM_SECONDS) -> str:
        """Return what Helm prints. Raises CommandError, and ToolError when it is missing."""
        words = (*tool.options({"--kube-context": self.context, "--namespace": self.namespace}), *words)
        return tool.text(tool.run("helm", words, stdin=stdin, seconds=seconds, apart=self.is_apart).stdout)

    @abstractmethod
    def get(self, kind: str, name: str, /) -> Object:
        """Return an object, by kubectl's name of its kind; an empty map when there is none."""

    @abstractmethod
    def select(self, kind: str, labels: str = "", /, fields: str = "") -> Object:
        """Return the list of the objects that labels and fields select; kinds of others as PLURAL.GROUP."""

    @abstractmethod
    def patch(self, kind: str, name: str, change: Object, manager: str, /) -> Object | None:
        """Merge a change into an object as a manager, and return it; None when its resourceVersion has changed."""

    @abstractmethod
    def made(self, what: Object, /) -> Object:
        """Return an object as Kubernetes would make it, with what it adds; nothing is made."""

    @abstractmethod
    def sights(self, job: str, labels: str, every: float = WATCH_SECONDS, /) -> Iterator[Sight]:
        """Yield a Job and its pods with these labels.

        At once, whenever they may have changed, and ``every`` so many seconds. It ends at the deadline, after a last
        time, or when a watch ends; then it can be called again.
        """

    @abstractmethod
    def run(self, pod: str, container: str, words: Sequence[str], /, *, has_input: bool = False) -> Channel:
        """Start a command in a container."""

    @abstractmethod
    def forward(self, pod: str, port: int, /) -> Forward:
        """Forward a port of this machine to one of a pod."""

    @abstractmethod
    def log(
        self, pod: str, container: str = "", /, *, follow: bool = False, times: bool = False, tail: int | None = None
    ) -> Generator[bytes]:
        """Yield the log of a container, by default the one that the pod names, in parts of any size.

        ``times`` come before the lines. ``follow`` goes on until the connection ends. It ends at the deadline.
        """
