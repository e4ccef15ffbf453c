"""What a command in a pod has written, and what of it is passed on."""

import sys
from contextlib import suppress


class Written:
    """How many bytes of its output and its errors a command has written, of which none are passed on twice."""

    def __init__(self) -> None:
        self._counts, self._again = [0, 0], [0, 0]

    def again(self, *, errors: bool = True) -> None:
        """Expect the same output from the begin, and the same errors."""
        self._again = [self._counts[0], self._counts[1] if errors else 0]

    def forget_errors(self) -> None:
        """Expect none of the errors so far."""
        self._counts[1] = 0

    def new(self, which: int, data: bytes) -> bytes:
        """Return what is new."""
        known = min(self._again[which], len(data))
        self._again[which] -= known
        self._counts[which] += len(data) - known
        return data[known:]


class HeldBack(Written):
    """Keeps what a command writes until it has ended."""

    def __init__(self) -> None:
        super().__init__()
        self._kept = [b"", b""]

    def new(self, which: int, data: bytes) -> bytes:
        """Return nothing."""
        self._kept[which] += data
        return b""

    def pass_on(self) -> None:
        """Write it."""
        for target, data in zip((sys.stdout.buffer, sys.stderr.buffer), self._kept, strict=True):
            with suppress(BrokenPipeError):  # nobody reads it
                target.write(data)
                target.flush()
