"""What a command in a pod has written, told from the words of the kubectl that brings it."""

import re
import sys
from contextlib import suppress

from minicluster.cluster.pods import FIND_TOOLS


class Written:
    """How many bytes of its output and its errors a command has written, of which none are passed on twice."""

    is_over = False  #: whether its output has come to a mark of its end

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

    def rest(self) -> bytes:
        """Take the end of the output; return what was held back."""
        return b""

    def complete(self, text: str) -> None:
        """Write what was not written of an output."""
        self.again()
        sys.stdout.buffer.write(self.new(0, text.encode()))
        sys.stdout.buffer.flush()


class UntilMark(Written):
    """Of a command that ends its output with a mark, which is not passed on."""

    _held = b""

    def again(self, *, errors: bool = True) -> None:
        """Expect the same from the begin."""
        self._held = b""
        super().again(errors=errors)

    def new(self, which: int, data: bytes) -> bytes:
        """Return what is new, but for what may be the mark."""
        if which == 0:
            data = self._held + data
            self.is_over = data.endswith(OUTPUT_MARK)
            at = next(at for at in range(len(OUTPUT_MARK) + 1) if data.endswith(OUTPUT_MARK[: len(OUTPUT_MARK) - at]))
            end = len(data) - len(OUTPUT_MARK) + at
            data, self._held = data[:end], data[end:]
        return super().new(which, data)

    def rest(self) -> bytes:
        """Return what was no mark."""
        held, self._held = self._held, b""
        return b"" if self.is_over else super().new(0, held)


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


#: The last line of an output with a mark (instance.py)
OUTPUT_MARK = b"\x1eminicluster-end\n"
#: The line with the process id, so that a signal finds the command
BEGIN_LINE = re.compile(rb"^minicluster-process (\d+)\n", re.MULTILINE)
#: Comes with the exit code: without it the connection broke while the command ran
END_MARK = b"\x1eminicluster-end "
END_LINE = re.compile(END_MARK + rb"(\d+)\n")
#: Runs a command, between the marks. `fed` then reads to the end of the input: kubectl ends when all of it is read.
#: What the shell itself says of a command that a signal ended, is not shown
START = (
    """exec 3>&2 2>/dev/null; """
    """(/bin/sh -c 'echo "minicluster-process $$" >&2; exec "$@"' sh "$@" 2>&3 3>&-); code=$?; """
    f"{FIND_TOOLS}"
    r"""printf '\036minicluster-end %d\n' $code >&3; [ "$0" != fed ] || cat >/dev/null; exit $code"""
)
#: Lines by which kubectl ends; those of a command may look the same
LAST_WORDS = re.compile(rb"error: |Error from server|Unable to connect to the server|The connection to the server")
#: kubectl says this of a command that fails, or is killed with its pod
EXEC_FAILED = re.compile(rb"command terminated with exit code (\d+)\n?")
LINE = re.compile(rb"[^\n]*\n|[^\n]+")


class KubectlWords:
    """What kubectl writes to standard error, in parts."""

    def __init__(self, process: int) -> None:
        """Take the process id of kubectl, which is in each line of its log."""
        self.id = b""  #: of the process in the pod
        self.code: int | None = None  #: of the command, when it has ended
        self.failed: int | None = None  #: what kubectl calls its code, also when it was ended with its container
        self.own = b""  #: what kubectl has said itself, without its log
        self._log = re.compile(rb"[EWIF]\d{4} \d\d:\d\d:\d\d\.\d+ +%d [^\s:]+:\d+\] .*\n" % process)
        self._held = b""

    @property
    def holds(self) -> bool:
        """Whether a part is held back that may be kubectl's last words."""
        return bool(self.id) and self._held[:1] not in (b"", END_MARK[:1])

    def take(self, data: bytes) -> bytes:
        """Take a part; return what of it the command has written."""
        data = self._log.sub(b"", self._held + data)
        self._held = b""
        if not self.id:
            begun = BEGIN_LINE.search(data)
            if not begun:
                self._held = data
                return b""
            self.id, self.own, data = begun[1], data[: begun.start()], data[begun.end() :]
        if self.code is not None:
            return b""
        if end := END_LINE.search(data):
            self.code = int(end[1])
            return data[: end.start()]
        begin = _held_from(data)
        self._held = data[begin:]
        return data[:begin]

    def release(self) -> bytes:
        """Return what was held back, as kubectl goes on: it is the command's."""
        held, mark, rest = self._held.partition(END_MARK[:1])
        self._held = mark + rest
        return held

    def end(self) -> bytes:
        """Take the end; return what was held back and is the command's."""
        held, self._held = self._held, b""
        if self.code is not None:
            return b""
        theirs = b""
        for line in LINE.findall(held):
            if failed := EXEC_FAILED.fullmatch(line):
                self.failed = int(failed[1])
            elif LAST_WORDS.match(line) or not self.id:
                self.own += line
            else:
                theirs += line
        return theirs


def _held_from(data: bytes) -> int:
    """Return where what may be kubectl's last words, or a mark, begins."""
    begin = data.rfind(b"\n") + 1
    while begin:
        before = data.rfind(b"\n", 0, begin - 1) + 1
        line = data[before:begin]
        if not LAST_WORDS.match(line) and not EXEC_FAILED.fullmatch(line):
            break
        begin = before
    return begin
