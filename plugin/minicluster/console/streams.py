"""Standard streams, and files that are written with a mode; an error names what can't be read or written."""

import os
import select
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import IO, Any, Literal

from minicluster.console.messages import Where, complete_all, completed
from minicluster.console.signals import Handler, handled
from minicluster.console.terminal import Progress, Screen, columns, is_terminal, reworded
from minicluster.errors import OutputError, UsageError, one_line

#: Tells a person something; a `Told` has more for a terminal, and a `Step` is where a wait is
Say = Callable[[str], None]
#: What a change may end: nothing, jobs, or more than one MiniCluster
Stake = Literal["nothing", "jobs", "more"]
#: Asks a person to agree to what was said, and raises StateError if not
Agree = Callable[[str, Stake], None]


class _Shown:
    """What our streams show, if they are a terminal."""

    screen: Screen | None = None
    waits = 0  #: how many go on, one in the other
    is_within_line = False  #: whether the output of the work lacks its line's end
    where = Where()  #: what the command line is about
    lock = threading.RLock()  #: a thread may write the output of the work


def program() -> str:
    """Return the name by which a person called this program: kubectl finds its plugin by a name of its own."""
    return "kubectl minicluster" if Path(sys.argv[0]).stem == "kubectl-minicluster" else "minicluster"


def about(**where: str) -> None:
    """Note the ``namespace`` or the ``context`` that the command line is about, for the commands in messages."""
    _Shown.where = _Shown.where._replace(**where)


def pasteable(value: Any) -> Any:
    """Return a text, or a document, in which the commands are complete."""
    return complete_all(value, _Shown.where, program())


def pasteable_command(command: str) -> str:
    """Return a command that is complete."""
    return completed(command, _Shown.where, program())


def say(text: str) -> None:
    """Tell a person something on standard error, on one line. When nobody listens, nothing happens."""
    text = reworded(text, pasteable(text))
    with suppress(OSError), _Shown.lock:
        if is_terminal(sys.stderr):
            _show(text)
        elif not (isinstance(text, Progress) and text.is_quiet):
            sys.stderr.write(f"{program()}: {one_line(text)}\n")
            sys.stderr.flush()


def aloud(say: Say | None) -> Say:
    """Return a `say` without the steps that only a terminal shows; for None one that tells nothing."""
    return lambda text: None if say is None or (isinstance(text, Progress) and text.is_quiet) else say(text)


def _show(text: str) -> None:
    if not (_Shown.screen and _Shown.screen.file is sys.stderr):
        _Shown.screen = Screen(sys.stderr)
    if _Shown.is_within_line:
        sys.stderr.write("\n")
        _Shown.is_within_line = False
    if not isinstance(text, Progress):
        _Shown.screen.say(f"{program()}: ", text)
    elif _Shown.waits and not _feeds_a_program():
        _Shown.screen.show(text)
    elif not text.is_quiet:
        _Shown.screen.say(f"{program()}: ", text)


def _feeds_a_program() -> bool:
    """Return whether another program gets our output: most often it writes to the same terminal."""
    mode = os.fstat(1).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@contextmanager
def waiting() -> Iterator[None]:
    """Let the steps that are said meanwhile have one line of a terminal, which is gone afterwards."""
    with _Shown.lock:
        _Shown.waits += 1
    try:
        yield
    finally:
        with _Shown.lock:
            _Shown.waits -= 1
            if not _Shown.waits:
                _clear()


def _clear() -> None:
    if _Shown.screen:
        with suppress(OSError):
            _Shown.screen.clear()


def say_once() -> Say:
    """Return a `say` that tells each text only once."""
    return cache(say)


def write(data: bytes) -> None:
    """Write to standard output, and be sure that it got there. Raises OutputError."""
    with _Shown.lock:
        if is_terminal(sys.stdout):
            _clear()
            _Shown.is_within_line = bool(data) and not data.endswith(b"\n")
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except OSError as error:
            raise OutputError(f"standard output can't be written: {error.strerror}") from None


def width() -> int:
    """Return the columns of the terminal that standard output is; 0 if it is none."""
    return columns(sys.stdout)


def _end(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _lost_reader() -> "select.poll":
    poll = select.poll()
    poll.register(1, 0)  # 0: only errors are reported
    return poll


@contextmanager
def until_unread(end: Handler = _end) -> Iterator[None]:
    """End the process quietly, as SIGPIPE does, as soon as nobody reads standard output, even if nothing is written.

    ``end`` is a handler that raises something else for that. For the main thread.
    """
    if not hasattr(select, "poll"):  # Windows
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        # a command that ends before it has read its input gives us the same signal
        if _lost_reader().poll(0):
            _discard(1)
            end(number, frame)

    def watch(main: int) -> None:
        _lost_reader().poll()
        signal.pthread_kill(main, signal.SIGPIPE)

    with handled([signal.SIGPIPE], handle):
        threading.Thread(target=watch, args=(threading.get_ident(),), daemon=True).start()
        yield


def read(source: IO[bytes]) -> bytes:
    """Return all that a file, or standard input, has. Raises UsageError when it can't be read."""
    try:
        return source.read()
    except OSError as error:
        name = "standard input" if source.name in ("<stdin>", 0) else source.name
        raise UsageError(f"{name} can't be read: {error.strerror}") from None


def write_file(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file with a mode; an existing file is replaced as a whole. Raises OutputError."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise OutputError(f"{path} exists and is not a regular file: give the path of a file")
    import tempfile  # noqa: PLC0415 - costs a post-render 5 ms

    new = ""
    try:
        # beside it: a full disk must not cost the file that is there, which others may be able to read, too
        descriptor, new = tempfile.mkstemp(dir=path.parent, prefix=".minicluster-")
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(data)
        Path(new).replace(path)
    except OSError as error:
        if new:
            Path(new).unlink(missing_ok=True)
        raise OutputError(f"{path} can't be written: {error.strerror}") from None


def open_closed() -> None:
    """Give a closed standard stream a descriptor that fails when it is used; else the next file gets its number."""
    for number, name, mode, other in (
        (0, "stdin", "r", os.O_WRONLY),
        (1, "stdout", "w", os.O_RDONLY),
        (2, "stderr", "w", os.O_RDONLY),
    ):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, other)
            os.dup2(opened, number)
            if opened != number:
                os.close(opened)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - as long as the process


def discard_unwritten() -> None:
    """Drop output that could not be written: Python would try again at its exit, and print an error."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _discard(stream.fileno())


def _discard(descriptor: int) -> None:
    """Let all that is written to a descriptor vanish."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
