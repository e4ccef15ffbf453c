"""The programs that commands send to the lead: settle.py and burst_need.py."""

from collections import deque
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any, Protocol

from tools.simulator.clock import Condition, Process
from tools.simulator.flux_modules import modules
from tools.simulator.lead import LeadPrograms, Listener
from tools.simulator.shipped import Machine

#: What wakes burst_need.py beside Flux
OFFER = "offer"


class LeadProgram(Protocol):
    """A program that runs on the lead for somebody."""

    def take(self, data: bytes) -> None:
        """Take what the client has written; b"" is its end."""

    def close(self) -> None:
        """End it."""


class SentProgram:
    """A program with standard input and output, as it runs for one connection."""

    def __init__(self, lead: LeadPrograms, send: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        """Start it; ``send`` takes what it writes."""
        self.lead, self.send, self.input, self.changed = lead, send, deque[bytes](), Condition(lead.loop)
        machine = Machine(lambda *_: None)
        vars(machine).update(read=lambda *_: self.input.popleft())
        self.out = SimpleNamespace(write=lambda text: send(text.encode()), flush=lambda: None)
        self.stand_ins = {**modules(lead.flux), "os": machine, "sys": SimpleNamespace(stdout=self.out)}
        self.process = Process(lead.loop, self.work(), ended)

    def work(self) -> Callable[[], Any]:
        """Return what it does."""
        raise NotImplementedError

    def take(self, data: bytes) -> None:
        """Take what the client has written; b"" is its end."""
        self.input.append(data)
        self.changed.notify_all()

    def close(self) -> None:
        """End it."""
        self.process.kill()


class Settle(SentProgram):
    """settle.py."""

    def work(self) -> Callable[[], Any]:
        """Return what it does."""
        self.stand_ins["select"] = SimpleNamespace(select=self._select)
        programs = self.lead.programs_with(self.stand_ins)
        return lambda: programs.settle.hold(self.stand_ins["flux"].Flux(), self.out)

    def _select(self, _: object, __: object, ___: object, seconds: float) -> tuple[object, ...]:
        return (self.changed.wait_for(lambda: self.input, seconds),)


class BurstNeed(SentProgram):
    """burst_need.py."""

    def work(self) -> Callable[[], Any]:
        """Return what it does."""
        programs = self.lead.programs_with(self.stand_ins, lambda text: self.send(f"{text}\n".encode()))
        others = self.lead.listeners.setdefault("burst_need", [])
        own = {"loop": self.lead.loop, "others": others, "program": self, "streams": programs.changes.NEED_STREAMS}
        programs.changes.Changes = type("Changes", (OfferListener,), own)
        main: Callable[[], Any] = programs.burst_need.main
        return main

    def take(self, data: bytes) -> None:
        """Take it, and wake the program."""
        super().take(data)
        for listener in self.lead.listeners["burst_need"]:
            listener.hear(OFFER)

    def close(self) -> None:
        """End it."""
        super().close()
        others = self.lead.listeners["burst_need"]
        others[:] = [other for other in others if getattr(other, "program", None) is not self]


class OfferListener(Listener):
    """What stands for the `Changes` of burst_need.py, which reads its input meanwhile."""

    program: BurstNeed
    streams: Collection[str]

    def __init__(self, handle: object) -> None:
        super().__init__(handle, (*self.streams, OFFER))
        self.handle = SimpleNamespace(fd_watcher_create=self._watch)

    def _watch(self, _: int, read: Callable[[], None], __: int) -> AbstractContextManager[None]:
        self._read = read
        return nullcontext()

    def wake(self) -> None:
        """Do nothing: who reads is awake."""

    def wait(self, least: float, most: float) -> None:
        """Let a program wait, and read what has come."""
        super().wait(least, most)
        while self.program.input:
            self._read()
