"""Cuts text into lines at line feeds and nowhere else, as `kubectl logs`, a shell and JSON Lines do.

`splitlines` also cuts at a carriage return, a form feed, U+0085 and U+2028: a progress bar, or a name in JSON.
"""


def split(text: str) -> list[str]:
    r"""Return the lines of a text without their ends.

    >>> split("50%\r100%\n\nend\n")
    ['50%\r100%', '', 'end']
    """
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


class Tail:
    """The last bytes of what comes in parts of any size."""

    def __init__(self, most: int) -> None:
        self._most, self._kept, self._came = most, bytearray(), 0

    def take(self, data: bytes) -> None:
        """Take a part."""
        self._came += len(data)
        self._kept += data
        if len(self._kept) > 2 * self._most:
            del self._kept[: -self._most]

    def end(self) -> tuple[str, int]:
        """Return them as a text, and how many bytes came before."""
        last = bytes(self._kept[-self._most :])
        return last.decode(errors="replace"), self._came - len(last)


class Cutter:
    """Cuts bytes that come in parts of any size into lines that keep their ends."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def take(self, data: bytes) -> list[bytes]:
        """Take a part, and return the lines that it completes."""
        *lines, rest = data.split(b"\n")
        if lines:
            # joined once a line: a long one may come in thousands of parts
            lines[0] = b"".join([*self._begun, lines[0]])
            self._begun.clear()
        if rest:
            self._begun.append(rest)
        return [line + b"\n" for line in lines]

    def end(self) -> list[bytes]:
        """Return the last line if it has no end."""
        rest, self._begun = b"".join(self._begun), []
        return [rest] if rest else []
