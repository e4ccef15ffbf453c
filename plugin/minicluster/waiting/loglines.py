"""Passes each line of a log once, though the log is read more than once."""

import re
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

#: The time before each line: the second, its fraction, the time zone
STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(?:Z|[-+]\d\d:\d\d) ")
#: What may be the begin of a time
CUT_STAMP = re.compile(rb"[-\d:.TZ+]*")
Time = tuple[bytes, bytes]


class LogPart(NamedTuple):
    """A part of a line without its time; the last one ends with the line's end."""

    text: bytes
    is_note: bool  #: whether it is a whole line of the kubelet's own, which has no time


class NewLines:
    """Finds what it has not seen before, by the times before the lines.

    Lines may have one time (CRI-O gives it to all that it reads at once), and a line of standard error may stand after
    a later one of standard output. So what is known is counted from the first line with the latest time: none before it
    has that time, and a log that the kubelet has cut at its begin may still have it.
    """

    def __init__(self) -> None:
        self._latest: Time = (b"", b"")
        self._count = 0  #: of lines from the first one with that time on
        self._length = 0  #: of what is known of the last one
        self._notes: list[bytes] = []  #: that came after it

    def of(self, data: Iterable[bytes]) -> Iterator[LogPart]:
        """Yield what is new in a reading from the log's begin, which comes in parts of any size."""
        left, is_latest, notes = self._count, False, list(self._notes)
        begin, skip = b"", None  # bytes that are known of the line that has begun; None before its time is whole
        for part in _parts_of_lines(data):
            text = part
            if skip is None:
                begin += part
                match = STAMP.match(begin)
                if not match and not begin.endswith(b"\n"):
                    continue
                text, begin = begin, b""
                if not match:
                    yield from self._note(text, notes)
                    continue
                text, time = text[match.end() :], (match[1], (match[2] or b"").ljust(9, b"0"))
                if left and time <= self._latest:
                    is_latest = is_latest or time == self._latest
                    left -= is_latest
                    skip = sys.maxsize if left else self._length
                else:
                    left, skip = 0, 0
                    notes.clear()
                    self._begin(time)
            if len(text) > skip:
                self._length += len(text) - skip
                yield LogPart(text[skip:], is_note=False)
            skip = None if part.endswith(b"\n") else max(0, skip - len(text))
        if not CUT_STAMP.fullmatch(begin):
            yield from self._note(begin, notes)

    def _begin(self, time: Time) -> None:
        self._count = 1 if time > self._latest else self._count + 1
        self._latest, self._length = max(time, self._latest), 0
        self._notes.clear()

    def _note(self, text: bytes, known: list[bytes]) -> Iterator[LogPart]:
        """Yield a note unless an earlier reading had it."""
        if text not in known:
            self._notes.append(text)
            yield LogPart(text, is_note=True)


def _parts_of_lines(data: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the parts, cut after each line end."""
    for part in data:
        *lines, rest = part.split(b"\n")
        yield from (line + b"\n" for line in lines)
        if rest:
            yield rest
