"""Signal handlers that are set for a while."""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

#: Gets the signal's number and what was running
Handler = Callable[[int, FrameType | None], None]


@contextmanager
def handled(numbers: Iterable[int], handler: Handler) -> Iterator[None]:
    """Set a handler for some signals, and restore the former handlers at the end. Only for the main thread."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)
