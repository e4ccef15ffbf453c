"""Signal handlers that are set for a while, waits that let them run, and what begins anew after a fork."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

if TYPE_CHECKING:
    import subprocess

#: Gets the signal's number and what was running
Handler = Callable[[int, FrameType | None], None]
#: The signals that end a program; those but Ctrl-C
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
TERMINATIONS = SIGNALS[1:]
#: The exit codes of a program that they have ended
EXIT_CODES = frozenset(128 + number for number in SIGNALS)
#: The number of Ctrl-C after which a command is left alone
STOP_PRESSES = 3
#: Seconds that a command has to end what it has started
EXIT_SECONDS = 10.0
#: The most seconds until the handler of a signal runs during `wait` and `join`
HANDLER_SECONDS = 1.0
#: The processes that `interruptible` ends with the command, if nobody else has ended them
LEFT: set["subprocess.Popen[bytes]"] = set()
#: While `held`: the signals that came
_HELD: list[list[int]] = []


@contextmanager
def handled(numbers: Iterable[int], handler: Handler) -> Iterator[None]:
    """Set a handler for some signals, and restore the former handlers at the end. Only for the main thread."""

    def handle(number: int, frame: FrameType | None) -> None:
        if _HELD:
            _HELD[-1].append(number)
        else:
            handler(number, frame)

    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


@contextmanager
def held() -> Iterator[None]:
    """Let the handlers of signals run at the end of the block, which must be short.

    Without this, one that raises while `Popen` starts a process leaves a process that nobody knows.
    """
    if threading.current_thread() is not threading.main_thread():  # no handler runs here
        yield
        return
    came: list[int] = []
    _HELD.append(came)
    try:
        yield
    finally:
        _HELD.pop()
        for number in came:
            signal.raise_signal(number)


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """Let each of SIGNALS raise KeyboardInterrupt, and give the numbers of those that came. Only for the main thread.

    Those but Ctrl-C end the process in any case. What a signal has left behind is ended, too.
    """
    came: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if number != signal.SIGINT:
            for other in TERMINATIONS:
                signal.signal(other, signal.SIG_IGN)
            threading.Thread(target=_end_late, args=(128 + number,), daemon=True).start()
        signal.default_int_handler(number, frame)

    try:
        with handle_signals(end):
            yield came
    finally:
        _end_left()


def _end_left() -> None:
    if not (left := [*LEFT]):
        return
    import subprocess  # noqa: PLC0415 - a post-render has no use of it

    for process in left:
        process.kill()
    for process in left:
        # killed is not ended: nobody must find it after us
        with suppress(subprocess.TimeoutExpired):
            process.wait(HANDLER_SECONDS)


def _end_late(code: int) -> None:
    """End the process though something keeps it, such as another thread."""
    time.sleep(EXIT_SECONDS)
    os._exit(code)


def handle_signals(handler: Handler) -> AbstractContextManager[None]:
    """Set a handler for the signals that end a program."""
    # nohup, or a shell's &, makes us ignore some: we still do
    return handled((number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN), handler)


def wait(is_there: Callable[[float], bool], seconds: float | None = None) -> bool:
    """Wait until ``is_there`` is true, which itself waits for the seconds that it gets; None sets no limit.

    Return whether it was. Python runs a handler between two steps of ours: that of a signal that comes just before a
    system call only runs when the call ends, so no call may be long.
    """
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        left = HANDLER_SECONDS if end is None else max(0.0, end - time.monotonic())
        if is_there(min(HANDLER_SECONDS, left)):
            return True
        if left < HANDLER_SECONDS:
            return False


def join(thread: threading.Thread) -> None:
    """Wait until a thread has ended, and let handlers run meanwhile."""
    while thread.is_alive():
        thread.join(HANDLER_SECONDS)


class Forked(Protocol):
    """An object that is of use in a child, too."""

    def after_fork(self) -> None:
        """Begin anew, in a child: other threads are gone, and any lock may be held for ever."""


_KNOWN: WeakSet[Forked] = WeakSet()


def keep_after_fork(one: Forked) -> None:
    """Call ``after_fork`` of an object, while there is one, in each child."""
    _KNOWN.add(one)


def _begin_anew() -> None:
    for one in list(_KNOWN):
        one.after_fork()


os.register_at_fork(after_in_child=_begin_anew)
