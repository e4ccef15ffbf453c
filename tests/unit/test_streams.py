"""Standard output whose reader is gone."""

import signal
import subprocess
import sys

import pytest
from support import Done

#: Its thread that watches the reader comes late; ``sys.stdin`` ends once the reader is gone
PROGRAM = """
import sys, threading
from minicluster import streams
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
