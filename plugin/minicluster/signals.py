"""Signal handlers that are set for a while, and waits that let them run."""

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

#: Gets the signal's number and what was running
Handler = Callable[[int, FrameType | None], None]
#: The most seconds until the handler of a signal runs during `wait` and `join`
HANDLER_SECONDS = 1.0


@contextmanager
def handled(numbers: Iterable[int], handler: Handler) -> Iterator[None]:
    """Set a handler for some signals, and restore the former handlers at the end. Only for the main thread."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt, unless it is ignored. Only for the main thread."""
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    with handled([] if ignored else [signal.SIGINT], signal.default_int_handler):
        yield


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
