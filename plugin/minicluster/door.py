"""The front door: what goes wrong behind it becomes one line on standard error and an exit code, never a traceback."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from minicluster.errors import MiniClusterError, OutputError, UsageError


def say(text: str) -> None:
    """Tell a person something, on standard error; where nobody listens, nothing."""
    with suppress(OSError):
        sys.stderr.write(f"minicluster: {text}\n")
        sys.stderr.flush()


def write(data: bytes) -> None:
    """Write to standard output, and be sure that it got there. Raises OutputError."""
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        raise OutputError(f"standard output can't be written: {error.strerror}") from None


def read(source: IO[bytes]) -> bytes:
    """Return all that a file, or standard input, has. Raises UsageError when it can't be read."""
    try:
        return source.read()
    except OSError as error:
        name = "standard input" if source.name in ("<stdin>", 0) else source.name
        raise UsageError(f"{name} can't be read: {error.strerror}") from None


def tell_helm(text: str) -> int:
    """Print a manifest that makes Helm 4 fail with our message, and return the exit code for that.

    Helm 4 throws a plugin's stderr away, but names the file of a manifest that it can't parse: this one's
    name is a list, and its file is the message.
    """
    with suppress(OutputError):
        write(error_document(text))
        return 0
    return 1


def error_document(text: str) -> bytes:
    """Return the manifest that Helm 4 can't parse. Helm goes on with words of its own, so the message has an end."""
    annotations = {"postrenderer.helm.sh/postrender-filename": f"minicluster: {text} [the rest of this line is Helm's]"}
    document = {
        "apiVersion": "v1",
        "kind": "Error",
        "metadata": {"name": ["error"], "annotations": annotations},
    }
    return json.dumps(document).encode() + b"\n"


@contextmanager
def door(tell: Callable[[str], int | None] = say) -> Iterator[None]:
    """Run what is inside; end with one line and exit code 2 for wrong usage, 1 for all else that goes wrong.

    ``tell`` shows the line; a number that it returns is the exit code instead.
    """
    _open_what_is_closed()
    try:
        yield
        sys.stdout.flush()
    except BaseException as error:
        if isinstance(error, SystemExit):
            raise
        told = tell(message(error))
        _give_up_output()
        sys.exit((error.code if isinstance(error, MiniClusterError) else 1) if told is None else told)


def message(error: BaseException) -> str:
    """Return an error in one line."""
    match error:
        case MiniClusterError():
            return str(error)
        case KeyboardInterrupt():
            return "interrupted"
        case RecursionError():
            return "what was given is nested too deeply"
        case MemoryError():
            return "there is not enough memory for what was given"
        case OSError():
            text = error.strerror or type(error).__name__
            return " ".join(f"{error.filename}: {text}".split()) if error.filename else text
    # no text of it: it may be about a certificate
    return f"{type(error).__name__} at {_place(error)}, a mistake of minicluster's: report it with what you gave it"


def _place(error: BaseException) -> str:
    """Return where in the package an error came from."""
    found, trace = "an unknown line", error.__traceback__
    while trace:
        path = Path(trace.tb_frame.f_code.co_filename)
        if path.is_relative_to(Path(__file__).parent) and path.name != Path(__file__).name:
            found = f"{path.name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def _open_what_is_closed() -> None:
    """Give a standard stream that is closed a place that fails when it is used; else a file would get its number."""
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


def _give_up_output() -> None:
    """Throw away what could not be written: at its end Python tries once more, and complains."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
