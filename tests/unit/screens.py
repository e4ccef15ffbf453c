"""A terminal as a person has it: runs a program in a pseudo-terminal, and keeps what its screen has shown."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyte

#: The most that a program may take
LIMIT_SECONDS = 120.0
#: Rows of the terminal
ROWS = 40
#: Goes to the begin of a line, and erases it
REDRAWN = b"\r\x1b[2K"


class Seen(NamedTuple):
    """What a program has shown."""

    code: int
    screens: list[list[str]]  #: each different one, as lines without what is blank at their ends
    colours: dict[str, str]  #: of the last screen: text by its colour's name
    raw: bytes

    @property
    def last(self) -> list[str]:
        """The screen when the program had ended."""
        return self.screens[-1]

    def below(self, line: str) -> list[str]:
        """Return the lines that were on some screen right after a line, each once."""
        found = [shown[shown.index(line) + 1 :] for shown in self.screens if line in shown]
        return list(dict.fromkeys(lines[0] for lines in found if lines))


def look(
    words: Sequence[str],
    environment: Mapping[str, str],
    columns: int = 80,
    *,
    folder: Path | None = None,
    typed: Sequence[tuple[str, str]] = (),
    start: Callable[..., "subprocess.Popen[Any]"] = subprocess.Popen,
) -> Seen:
    """Start a program on a terminal of a width, in a folder, and wait for its end.

    Of ``typed``, the second text of each pair is typed as soon as the program has written the first.
    """
    screen = pyte.Screen(columns, ROWS)
    stream = pyte.ByteStream(screen)
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    kept = {key: value for key, value in environment.items() if key not in ("NO_COLOR", "COLUMNS", "LINES")}
    env = {"TERM": "xterm-256color", **{k: v for k, v in kept.items() if k != "TERM"}}
    screens: list[list[str]] = [[]]
    raw, waits = b"", list(typed)
    pipes = {"stdin": its, "stdout": its, "stderr": its}
    with start(words, **pipes, env=env, cwd=folder, start_new_session=True) as process:
        os.close(its)
        limit = threading.Timer(LIMIT_SECONDS, os.killpg, (process.pid, signal.SIGKILL))
        limit.start()
        said = b""
        while data := _read(ours):
            raw, said = raw + data, said + data
            while waits and waits[0][0].encode() in said:
                after, text = waits.pop(0)
                said = said.partition(after.encode())[2]
                os.write(ours, text.encode())
            # each new state of a line that lives begins so
            for part in data.replace(REDRAWN, b"\0" + REDRAWN).split(b"\0"):
                stream.feed(part)
                now = [line.rstrip() for line in screen.display]
                while now and not now[-1]:
                    now.pop()
                if now != screens[-1]:
                    screens.append(now)
        os.close(ours)
        code = process.wait(60)
        limit.cancel()
    return Seen(code, screens, _colours(screen), raw)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # the program has ended
        return b""


def _colours(screen: pyte.Screen) -> dict[str, str]:
    found: dict[str, str] = {}
    for row in range(screen.lines):
        for column in range(screen.columns):
            letter = screen.buffer[row][column]
            found[letter.fg] = found.get(letter.fg, "") + letter.data
    return {colour: " ".join(text.split()) for colour, text in found.items()}
