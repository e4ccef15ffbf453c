"""The keys that a person presses on a terminal, one by one and unseen."""

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager

#: What a terminal sends for keys that are no characters
NAMED = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
}


@contextmanager
def unseen() -> Iterator[None]:
    """Let standard input, which is a terminal, give each key at once and show none."""
    # Unix alone has them
    import termios  # noqa: PLC0415
    import tty  # noqa: PLC0415

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def keys(seconds: float) -> list[str]:
    """Return the keys that were pressed, at once or after some seconds; "q" at the end of the input."""
    descriptor = sys.stdin.fileno()
    if not select.select([descriptor], [], [], seconds)[0]:
        return []
    return split(os.read(descriptor, 1024).decode(errors="replace")) or ["q"]


def split(text: str) -> list[str]:
    r"""Return the keys in what a terminal has sent.

    >>> split("s\x1b[A\r")
    ['s', 'up', 'enter']
    """
    codes = []
    while text:
        name = next((each for each in NAMED if text.startswith(each)), text[0])
        codes.append(NAMED.get(name, name))
        text = text[len(name) :]
    return codes
