"""A kubectl that runs a command as a real one does: by streams of its own, which the file `cut` breaks.

relay.py FOLDER COMMAND...: it ends when the command has ended, and what it has read of its input is sent.
"""

import os
import select
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

#: What kubectl 1.36 says when a load balancer closes its connections
SAID = """\
E1126 22:44:04.779395 {pid:7} v2.go:130] "Unhandled Error" err="next reader: read tcp: connection reset by peer"
error: error reading from error stream: next reader: read tcp 10.0.0.1:6443: read: connection reset by peer
"""


class Input:
    """A thread that copies the input to the end."""

    def __init__(self, target: IO[bytes]) -> None:
        self.target, self.is_writing = target, False
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        """Copy."""
        try:
            while data := os.read(0, 1 << 15):
                self.is_writing = True
                self.target.write(data)
                self.target.flush()
                self.is_writing = False
            self.target.close()
        except OSError:
            pass


def main(folder: str, *words: str) -> None:
    """Run the command: what it printed before the cut is passed on."""
    cut, pipe = Path(folder, "cut"), subprocess.PIPE
    process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
    assert process.stdin
    assert process.stdout
    assert process.stderr
    sent = Input(process.stdin)
    targets = {process.stdout.fileno(): 1, process.stderr.fileno(): 2}
    while process.poll() is None or sent.is_writing or targets:
        is_cut = cut.exists()
        ready, _, _ = select.select(list(targets), [], [], 0 if is_cut else 0.01)
        for source in ready:
            if data := os.read(source, 1 << 15):
                os.write(targets[source], data)
            else:
                del targets[source]
        if is_cut and not ready:
            cut.unlink()
            os.write(2, SAID.format(pid=os.getpid()).encode())
            os._exit(1)
    if process.returncode:
        os.write(2, f"command terminated with exit code {process.returncode}\n".encode())
    os._exit(process.returncode)


main(*sys.argv[1:])
