"""Connections to programs on the lead, which may be cut at any time."""

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace

from tools.simulator.clock import Condition
from tools.simulator.kubernetes import Kubernetes
from tools.simulator.lead import LeadPrograms
from tools.simulator.remote import Remote
from tools.simulator.sent import BurstNeed, LeadProgram, Settle

#: What stands for the module that knows the texts of these programs: their names are enough
SENT_STAND_IN = {"minicluster.lead.program": SimpleNamespace(first_line=lambda name: f"{name}\n", BOOT="BOOT")}
#: How long data is on its way; and when the connection is slow
TRAVEL_SECONDS, SLOW_SECONDS, SLOW_PART = (0.001, 0.1), (0.1, 5.0), 0.05
#: After which a program learns that its client is gone, if the connection was cut silently
GONE_SECONDS = 60.0


class Pipe:
    """One direction of a connection: data comes in order."""

    def __init__(self, kubernetes: Kubernetes, take: Callable[[bytes], None]) -> None:
        self.loop, self.random, self.take = kubernetes.loop, kubernetes.random, take
        self._arrives, self.is_cut = 0.0, False

    def send(self, data: bytes) -> None:
        """Send data, b"" as its end."""
        if not self.is_cut:
            is_slow = self.random.random() < SLOW_PART
            delay = self.random.uniform(*(SLOW_SECONDS if is_slow else TRAVEL_SECONDS))
            self._arrives = max(self._arrives, self.loop.now + delay)
            self.loop.at(self._arrives - self.loop.now, lambda: self.take(data))


class Channel:
    """A connection to a program on the lead, which the first line that is written names."""

    def __init__(self, kubernetes: Kubernetes, lead: LeadPrograms) -> None:
        self.exit_code, self.stderr, self._data = 0, b"", deque[bytes]()
        self._changed = Condition(kubernetes.loop)
        self._lead, self.loop = lead, kubernetes.loop
        self._back = Pipe(kubernetes, self._take)
        self._there = Pipe(kubernetes, lambda data: self._program.take(data) if self._program else None)
        self._program: LeadProgram | None = None
        self._is_over = False

    def _take(self, data: bytes) -> None:
        if not self._is_over:
            self._data.append(data)
            self._changed.notify_all()

    def wait(self, wake: "Waker | None", seconds: float | None) -> bool:
        """Wait for data, or for the waker."""
        if wake:
            wake.changed = self._changed
        return self._changed.wait_for(lambda: self._data or (wake and wake.is_set), seconds or 0.0)

    def read(self) -> bytes | None:
        """Return what has come, None at the end."""
        data = self._data[0]
        if data:
            self._data.popleft()
        return data or None

    def write(self, data: bytes) -> None:
        """Write; the program itself comes first."""
        if self._program:
            self._there.send(data)
            return
        name = data.decode().strip()
        starts: Mapping[str, Callable[..., LeadProgram]] = {"remote": Remote, "settle": Settle, "burst_need": BurstNeed}
        if name in starts:
            self._program = starts[name](self._lead, self._back.send, partial(self._back.send, b""))
        else:
            self.fail()

    def fail(self) -> None:
        """End at once: what is to run there is no part of the model."""
        self.exit_code = 1
        self._take(b"")

    def close(self) -> None:
        """End the program's input."""
        self._there.send(b"")

    def cut(self, is_silent: bool) -> None:
        """Cut the connection; ``is_silent``: neither side is told, and what is on its way may still come."""
        if not is_silent:
            self._take(b"")
            self._is_over = True
        self._there.is_cut = self._back.is_cut = True
        self.loop.at(GONE_SECONDS if is_silent else 1.0, lambda: self._there.take(b""))

    def abort(self) -> None:
        """Let who reads find the end."""
        self._take(b"")
        self._is_over = True
        self._there.send(b"")

    def kill(self) -> None:
        """End the program."""
        if self._program:
            self._program.close()

    def end(self) -> None:
        """End it with its lead."""
        self.kill()
        self._back.send(b"")


class Waker:
    """What wakes the session's thread while it waits for data."""

    def __init__(self) -> None:
        self.is_set = False
        self.changed: Condition | None = None

    def send(self, _: bytes) -> None:
        """Wake it."""
        self.is_set = True
        if self.changed:
            self.changed.notify_all()

    def recv(self, _: int) -> None:
        """Note that it woke."""
        self.is_set = False

    def setblocking(self, _: bool) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    __enter__ = close

    def __exit__(self, *_: object) -> None:
        """Do nothing."""
