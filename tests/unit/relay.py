"""A kubectl that runs a command as a real one does: by streams of its own, which the file `cut` breaks.

relay.py FOLDER COMMAND...: it ends when the command has ended, and what it has read of its input is sent.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO

#: What kubectl 1.36 says when a load balancer closes its connections
SAID = """\
E1126 22:44:04.779395 {pid:7} v2.go:130] "Unhandled Error" err="next reader: read tcp: connection reset by peer"
error: error reading from error stream: next reader: read tcp 10.0.0.1:6443: read: connection reset by peer
"""


class Copy:
    """A thread that copies to the end."""

    def __init__(self, read: Callable[[], bytes], target: IO[bytes]) -> None:
        self.read, self.target, self.is_writing = read, target, False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        """Copy."""
        try:
            while data := self.read():
                self.is_writing = True
                self.target.write(data)
                self.target.flush()
                self.is_writing = False
            self.target.close()
        except OSError:
            pass


def main(folder: str, *words: str) -> None:
    """Run the command."""
    cut, pipe = Path(folder, "cut"), subprocess.PIPE
    process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
    assert process.stdin
    assert process.stdout
    assert process.stderr
    out, err = process.stdout.fileno(), process.stderr.fileno()
    sent = Copy(partial(os.read, 0, 1 << 15), process.stdin)
    told = (
        Copy(lambda: os.read(out, 1 << 15), sys.stdout.buffer),
        Copy(lambda: os.read(err, 1 << 15), sys.stderr.buffer),
    )
    while process.poll() is None or sent.is_writing or any(one.thread.is_alive() for one in told):
        if cut.exists():
            cut.unlink()
            os.write(2, SAID.format(pid=os.getpid()).encode())
            os._exit(1)
        time.sleep(0.01)
    if process.returncode:
        os.write(2, f"command terminated with exit code {process.returncode}\n".encode())
    os._exit(process.returncode)


main(*sys.argv[1:])
