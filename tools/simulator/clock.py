"""Virtual time: events in their order, and programs that block, of which one runs at a time."""

import heapq
import itertools
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from greenlet import getcurrent, greenlet

#: What the virtual clock adds to its seconds for those since the epoch
EPOCH_SECONDS = 1_700_000_000.0
#: What a wait takes at least: less is lost in rounding, and who waits again and again would see no time pass
TICK_SECONDS = 1e-9
#: How long one waits that nothing wakes
FOREVER_SECONDS = 1e9
#: CPU seconds that programs may take for virtual time that is asked for at once: more is a loop without an end
LOOP_SECONDS = 60.0
#: Seconds between two tries to get a lock
LOCK_SECONDS = 0.005


class Killed(BaseException):
    """A program was killed: no handler of its own sees it."""


class Endless(BaseException):
    """A program computes without an end: no handler of its own sees it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise Endless after some CPU seconds."""

    def end(*_: object) -> None:
        raise Endless

    signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


class Loop:
    """Events by their virtual time, in seconds; events of one time in the order in which they were asked for."""

    def __init__(self) -> None:
        self.now = 0.0
        self.running: Process | None = None
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = itertools.count()

    def at(self, delay: float, event: Callable[[], None]) -> None:
        """Let an event happen after some seconds."""
        heapq.heappush(self._events, (self.now + max(delay, 0.0), next(self._number), event))

    def run(self, seconds: float) -> None:
        """Let virtual time pass."""
        end = self.now + seconds
        with time_limit(LOOP_SECONDS):
            while self._events and self._events[0][0] <= end:
                self.now, _, event = heapq.heappop(self._events)
                event()
        self.now = end

    def sleep(self, seconds: float) -> None:
        """Block the program that runs."""
        assert self.running, "what has no thread of its own must not wait"
        self.running.sleep(seconds)

    def time_module(self) -> SimpleNamespace:
        """Return what stands for Python's `time`."""
        return SimpleNamespace(
            monotonic=lambda: self.now,
            time=lambda: EPOCH_SECONDS + self.now,
            clock_gettime=lambda _: self.now,
            process_time=lambda: 0.0,
            thread_time=lambda: 0.0,
            sleep=self.sleep,
            gmtime=time.gmtime,
            strftime=time.strftime,
            CLOCK_BOOTTIME=time.CLOCK_BOOTTIME,
        )


class Process:
    """A program with a stack of its own, which runs only while the loop waits for it."""

    def __init__(self, loop: Loop, work: Callable[[], Any], ended: Callable[[], None]) -> None:
        """Start it; ``ended`` is called when the work returns or fails by OSError."""
        self.loop, self.is_over = loop, False
        self.error: BaseException | None = None
        self.has_failed = self._is_interrupted = False
        self._work, self._ended, self._is_killed, self._naps = work, ended, False, 0
        self._stack = greenlet(self._run)
        loop.at(0.0, self._step)

    def sleep(self, seconds: float) -> None:
        """Give the turn back for some seconds, or until it is woken. Raises KeyboardInterrupt for Ctrl-C."""
        if self._is_killed:
            raise Killed
        self._naps += 1
        nap = self._naps
        self.loop.at(seconds, lambda: self._step() if nap == self._naps else None)
        self._stack.parent.switch()
        if self._is_killed:
            raise Killed
        if self._is_interrupted:
            self._is_interrupted = False
            raise KeyboardInterrupt

    def wake(self, seconds: float) -> None:
        """End its sleep after some seconds."""
        self._naps += 1
        nap = self._naps
        self.loop.at(seconds, lambda: self._step() if nap == self._naps else None)

    def kill(self) -> None:
        """End it where it waits."""
        if not self.is_over and self.loop.running is not self:
            self._naps += 1
            self._is_killed = True
            self._step()

    def interrupt(self) -> None:
        """Press Ctrl-C where it waits."""
        if not self.is_over:
            self._naps += 1
            self._is_interrupted = True
            self._step()

    def _step(self) -> None:
        if self.is_over:
            return
        before, self.loop.running = self.loop.running, self
        self._stack.parent = getcurrent()
        self._stack.switch()
        self.loop.running = before
        if self.error:
            raise self.error
        if self.is_over and not self._is_killed:
            self._ended()

    def _run(self) -> None:
        try:
            if not self._is_killed:
                self._work()
        except Killed:
            pass
        except Endless:
            self.error = AssertionError("a program computes without an end")
        except OSError:
            self.has_failed = True
        except BaseException as error:
            self.error = error
        finally:
            self.is_over = True


class Lock:
    """A lock in virtual time: who waits for it lets others run."""

    def __init__(self, loop: Loop) -> None:
        self._loop, self._is_held = loop, False

    def __enter__(self) -> None:
        while self._is_held:
            self._loop.sleep(LOCK_SECONDS)
        self._is_held = True

    def __exit__(self, *_: object) -> None:
        self._is_held = False


class Condition:
    """A condition, and an event, in virtual time: whoever runs is alone, so there is nothing to lock."""

    def __init__(self, loop: Loop) -> None:
        self._loop, self._is_set = loop, False
        self._waiting: list[Process] = []

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    def notify_all(self) -> None:
        """Wake all that wait."""
        waiting, self._waiting = self._waiting, []
        for process in waiting:
            process.wake(0.0)

    def wait_for(self, is_true: Callable[[], Any], seconds: float = FOREVER_SECONDS) -> bool:
        """Wait until something is true."""
        end = self._loop.now + max(seconds, TICK_SECONDS)
        while not is_true() and self._loop.now < end:
            assert self._loop.running
            self._waiting.append(self._loop.running)
            self._loop.sleep(end - self._loop.now)
        return bool(is_true())

    def set(self) -> None:
        """Set the event."""
        self._is_set = True
        self.notify_all()

    def is_set(self) -> bool:
        """Tell whether the event is set."""
        return self._is_set

    def wait(self, seconds: float) -> bool:
        """Wait for the event."""
        return self.wait_for(self.is_set, seconds)


def threading_module(loop: Loop, start: Callable[[Callable[[], Any]], Any]) -> SimpleNamespace:
    """Return what stands for Python's `threading`; ``start`` starts the work of a thread."""

    def thread(target: Callable[..., Any], args: Sequence[Any] = (), **_: Any) -> SimpleNamespace:
        return SimpleNamespace(start=lambda: start(lambda: target(*args)), is_alive=lambda: False)

    return SimpleNamespace(
        Lock=lambda: Lock(loop),
        Thread=thread,
        Condition=lambda: Condition(loop),
        # a type, which annotations name
        Event=type("Event", (Condition,), {"__init__": lambda self: Condition.__init__(self, loop)}),
        current_thread=lambda: None,
        ExceptHookArgs=object,
        _register_atexit=lambda _: None,
    )
