"""Passes each line of a log once, though the log is read more than once."""

import re

#: The time before each line: the second, its fraction, the time zone
STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(?:Z|[-+]\d\d:\d\d) ")


class NewLines:
    """Finds the lines that it has not seen before, by the time at the begin of each."""

    def __init__(self) -> None:
        """Know no line yet."""
        self._last, self._note = ("", ""), ""

    def text(self, line: str) -> str | None:
        """Return the text of a line without its time; None for one that was seen before."""
        found = STAMP.match(line)
        # the kubelet's own messages have no time
        time = (found[1], (found[2] or "").ljust(9, "0")) if found else self._last
        if time <= self._last and (found or line == self._note):
            return None
        self._last, self._note = time, "" if found else line
        return line[found.end() :] if found else line
