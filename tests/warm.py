"""`minicluster` without the start of Python and of the package, which is most of what a post-renderer costs.

A server has both and forks for each caller, whose streams, environment, folder and arguments it takes over. The
tests of packages run the real start.
"""

import atexit
import gc
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Thread

#: What the server renders once: its forks then have all that a render imports, reads and keeps
DOCUMENT = b"""apiVersion: post-renderer-required.add--post-renderer-minicluster/v1
kind: MiniCluster
metadata: {name: a, namespace: ns}
spec: {maxSize: 2, autoscaling: {enabled: true}, metrics: {enabled: true}, services: [{name: b, command: c}]}
"""
#: The caller: a program in PATH. Python's own `socket` would be a third of its time.
CLIENT = """#!{python} -IS
import _socket, array, os, signal, sys
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect({path!r})
words = [os.getcwd(), str(os.getppid()), str(len(sys.argv)), *sys.argv]
words += [f"{{key}}={{value}}" for key, value in os.environ.items()]
data = "\\0".join(words).encode(errors="surrogateescape")
streams = array.array("i", [0, 1, 2])
server.sendmsg([len(data).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
server.sendall(data)
pid = int.from_bytes(server.recv(4), "big")
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, lambda number, _: os.kill(pid, number))
code = server.recv(1)
os._exit(code[0] if code else 70)
"""


@cache
def folder(python_path: Path) -> Path:
    """Return a folder for PATH whose `minicluster` runs what is in a PYTHONPATH; it is there until the process ends."""
    made = Path(tempfile.mkdtemp(prefix="mc-warm-"))
    path = made / "socket"
    client = made / "minicluster"
    client.write_text(CLIENT.format(python=sys.executable, path=str(path)))
    client.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(64)
        process = subprocess.Popen(
            [sys.executable, __file__, str(listener.fileno())],
            pass_fds=[listener.fileno()],
            stdin=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(python_path)},
            start_new_session=True,  # a terminal's Ctrl-C must not end it
        )
    atexit.register(process.communicate)
    return made


def serve(listener: socket.socket) -> None:
    """Fork for each caller, until standard input ends."""
    while True:
        ready, _, _ = select.select([0, listener], [], [])
        if 0 in ready:
            return
        caller, _ = listener.accept()
        if not os.fork():
            listener.close()
            _answer(caller)
        caller.close()
        _reap()


def _reap() -> None:
    """Wait for those that have ended: what they used is this process's then."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _answer(caller: socket.socket) -> None:
    """Run the program for a caller, tell its process and then its exit code, and end."""
    data, streams, _, _ = socket.recv_fds(caller, 4, 3)
    size, text = int.from_bytes(data, "big"), b""
    while len(text) < size:
        text += caller.recv(size - len(text))
    cwd, parent, count, *words = text.decode(errors="surrogateescape").split("\0")
    if pid := os.fork():
        caller.sendall(pid.to_bytes(4, "big"))
        Thread(target=_end_with, args=(caller, pid), daemon=True).start()
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        caller.sendall(bytes([code if code >= 0 else 128 - code]))
        os._exit(0)
    caller.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(word.split("=", 1) for word in words[int(count) :])
    os.getppid = lambda: int(parent)
    sys.argv[:] = words[: int(count)]
    from minicluster.__main__ import main  # noqa: PLC0415 - it is here by now

    main()
    sys.exit()


def _end_with(caller: socket.socket, pid: int) -> None:
    """Kill the program when its caller was killed."""
    with suppress(OSError):
        if not caller.recv(1):
            os.kill(pid, signal.SIGKILL)


def _preload() -> None:
    """Import and prepare what most callers need."""
    for name in ("cli", "commands", "lifecycle.creation", "release.adopt", "release.caller"):
        importlib.import_module(f"minicluster.{name}")
    render = importlib.import_module("minicluster.render.postrender").render
    render(DOCUMENT, seed=bytes(32), allow_random=False)
    gc.freeze()  # a fork copies what the collector touches


if __name__ == "__main__":
    _preload()
    serve(socket.socket(fileno=int(sys.argv[1])))
