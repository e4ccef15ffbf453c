"""Standard output whose reader is gone, and files that are replaced."""

import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from minicluster.console.signals import handled
from minicluster.console.streams import write_file
from minicluster.errors import OutputError
from support import Done

#: Its thread that watches the reader comes late; ``sys.stdin`` ends once the reader is gone
PROGRAM = """
import sys, threading
from minicluster.console import streams
{thread}
with streams.until_unread():
    sys.stdin.read()
    {then}
"""
LATE = "threading.Thread.start = lambda thread: None"
FOREVER = "while True: threading.Event().wait(0.05)"


@pytest.mark.parametrize(
    ("thread", "then"),
    [("", FOREVER), (LATE, "streams.write(b'text')"), (LATE, "print('text'); sys.stdout.flush()")],
    ids=["watched", "written", "printed"],
)
def test_a_program_ends_quietly_once_nobody_reads_its_output(thread: str, then: str) -> None:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", PROGRAM.format(thread=thread, then=then)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        process.stdout.close()
        process.stdout = None
        _, err = process.communicate(timeout=60)
    assert Done(process.returncode, "", err) == Done(128 + signal.SIGPIPE, "", "")


def test_a_file_is_replaced_as_a_whole_or_stays(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_file(path, b"old", 0o644)
    write_file(path, b"secret", 0o600)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"secret", 0o600)
    # a full disk
    with (
        resource_limit(resource.RLIMIT_FSIZE, 8),
        pytest.raises(OutputError, match="File too large"),
    ):
        write_file(path, b"longer than it may be", 0o600)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a", b"secret")]
    with pytest.raises(OutputError, match="none/a can't be written: No such file or directory"):
        write_file(tmp_path / "none" / "a", b"", 0o600)


@contextmanager
def resource_limit(what: int, limit: int) -> Iterator[None]:
    before = resource.getrlimit(what)
    with handled([signal.SIGXFSZ], lambda *_: None):
        resource.setrlimit(what, (limit, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(what, before)
