"""A client of the SDK: its session as it ships, and connections to the lead that may be cut at any time."""

from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any

from minicluster.errors import AwayError
from minicluster.sdk.job_future import JobFuture
from minicluster.sdk.lead import QUIET_SECONDS

from tools.simulator.clock import Condition, Process, threading_module
from tools.simulator.kubernetes import Kubernetes
from tools.simulator.lead import LeadPrograms
from tools.simulator.remote import Remote
from tools.simulator.shipped import Programs

#: How long data is on its way; and when the connection is slow
TRAVEL_SECONDS, SLOW_SECONDS, SLOW_PART = (0.001, 0.1), (0.1, 5.0), 0.05
#: After which a program learns that its client is gone, if the connection was cut silently
GONE_SECONDS = 60.0


class Pipe:
    """One direction of a connection: data comes in order."""

    def __init__(self, kubernetes: Kubernetes, take: Callable[[bytes], None]) -> None:
        self.loop, self.random, self._take = kubernetes.loop, kubernetes.random, take
        self._arrives, self.is_cut = 0.0, False

    def send(self, data: bytes) -> None:
        """Send data, b"" as its end."""
        if not self.is_cut:
            is_slow = self.random.random() < SLOW_PART
            delay = self.random.uniform(*(SLOW_SECONDS if is_slow else TRAVEL_SECONDS))
            self._arrives = max(self._arrives, self.loop.now + delay)
            self.loop.at(self._arrives - self.loop.now, lambda: self._take(data))


class Channel:
    """The connection of a session to a program on the lead."""

    def __init__(self, kubernetes: Kubernetes, lead: LeadPrograms) -> None:
        self.exit_code, self.stderr, self._data = 0, b"", deque[bytes]()
        self._changed = Condition(kubernetes.loop)
        self._back = Pipe(kubernetes, self._take)
        self.remote = Remote(lead, self._back.send, partial(self._back.send, b""))
        self._there = Pipe(kubernetes, self.remote.take)
        self._has_begun, self._is_over = False, False
        self.loop = kubernetes.loop

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
        if self._has_begun:
            self._there.send(data)
        self._has_begun = True

    def close(self) -> None:
        """End the program's input."""
        self._there.send(b"")

    def cut(self, is_silent: bool) -> None:
        """Cut the connection; ``is_silent``: neither side is told, and what is on its way may still come."""
        if not is_silent:
            self._take(b"")
            self._is_over = True
        self._there.is_cut = self._back.is_cut = True
        self.loop.at(GONE_SECONDS if is_silent else 1.0, lambda: self.remote.take(b""))

    def end(self) -> None:
        """End it with its lead."""
        self.remote.close()
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


class Client:
    """A program that submits jobs by the SDK, and waits for their ends."""

    def __init__(self, kubernetes: Kubernetes, lead: LeadPrograms, wake: Callable[[], None]) -> None:
        self.kubernetes, self.lead, self.loop, self._wake = kubernetes, lead, kubernetes.loop, wake
        self.threads: list[Process] = []
        self.channel: Channel | None = None
        self.submissions: list[Any] = []
        lead.flux.lead_ended = self._lead_ended
        console = SimpleNamespace(signals=SimpleNamespace(keep_after_fork=lambda _: None))
        log = SimpleNamespace(warning=lambda text, *words: lead.say(text % words))
        stand_ins = {
            "time": self.loop.time_module(),
            "threading": threading_module(self.loop, self._start),
            "socket": SimpleNamespace(socketpair=self._pair, socket=object),
            "minicluster.console": console,
            "minicluster.sdk.lead": SimpleNamespace(LOG=log, QUIET_SECONDS=QUIET_SECONDS),
        }
        programs = Programs(stand_ins, lead.say, lead.texts)
        self._requests = getattr(programs, "minicluster.sdk.requests")
        self.session = getattr(programs, "minicluster.sdk.session").Session(self._connect)

    def _start(self, work: Callable[[], Any]) -> None:
        self.threads.append(Process(self.loop, work, lambda: None))

    def _pair(self) -> tuple[Waker, Waker]:
        waker = Waker()
        return waker, waker

    def _connect(self, _stop: object) -> Channel:
        """Connect to the lead, which is woken if it sleeps. Raises AwayError."""
        self.loop.sleep(self.lead.random.uniform(0.05, 1.0))
        broker = self.lead.flux.brokers.get(0)
        if self.loop.now < self.kubernetes.down_until:
            raise AwayError("the API server does not answer")
        if not broker or not broker.is_online:
            self._wake()
            raise AwayError("there is no lead")
        self.channel = Channel(self.kubernetes, self.lead)
        return self.channel

    def _lead_ended(self) -> None:
        if self.channel:
            self.channel.end()

    def submit(self, attributes: dict[str, Any]) -> None:
        """Submit a job."""
        future = JobFuture(lambda: None)
        job = {"command": ["work"], "nodes": 1, "attributes": attributes}
        submission = self._requests.Submission(job, future)
        self.submissions.append(submission)
        self.session.send(submission)

    def cut(self, random: Random) -> None:
        """Cut the connection."""
        if self.channel:
            self.channel.cut(random.random() < 0.5)

    def unknown(self) -> list[str]:
        """Return the jobs whose fates the client does not know, or has been told wrongly."""
        fates, wrong = self.lead.flux.fates, []
        for each in self.submissions:
            lineage = fates.keys.get(each.key)
            error = each.future.exception(0) if each.future.done() else None
            succeeded = each.future.done() and not error
            if not each.future.done() or lineage is None or succeeded != bool(fates.successes.get(lineage)):
                wrong.append(f"{each.name or each.key}: {error or ('done' if each.future.done() else 'waits')}")
        return wrong

    def end(self) -> None:
        """End all."""
        for thread in self.threads:
            thread.kill()
        if self.channel:
            self.channel.remote.close()
