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

import fork_server

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
#: Where the package of this tree is
PLUGIN = Path(__file__).parents[1] / "plugin"
#: The variable that names the folder of all workers
SHARED = "MINICLUSTER_TEST_WARM"
#: The variable of a caller whose pods' programs are a line each
SHORT_PROGRAMS = "MINICLUSTER_TEST_SHORT_PROGRAMS"
#: The environment of a Helm, which ends before its garbage is worth collecting
NO_GARBAGE = {"GOGC": "off", "GOMEMLIMIT": "512MiB"}


def ours() -> Path:
    """Return the folder for the package of this tree, of all workers if they share it."""
    return Path(os.environ.get(SHARED) or folder(PLUGIN))


def share() -> None:
    """Let the workers that this process starts have its server: a server takes as long to start as 50 callers."""
    os.environ[SHARED] = str(ours())


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
    running: dict[int, tuple[int, socket.socket]] = {}  # processes by a descriptor, with their callers
    while True:
        callers = [caller for _, caller in running.values()]
        ready, _, _ = select.select([0, listener, *running, *callers], [], [])
        if 0 in ready:
            return
        if listener in ready:
            caller, _ = listener.accept()
            pid = _forked(caller)
            running[os.pidfd_open(pid)] = pid, caller
        for descriptor, (pid, caller) in list(running.items()):
            if descriptor in ready:
                _tell_end(pid, caller)
                os.close(descriptor)
                del running[descriptor]
            elif caller in ready:  # it was killed
                os.kill(pid, signal.SIGKILL)


def _tell_end(pid: int, caller: socket.socket) -> None:
    """Wait for a program that has ended, and tell its caller the exit code."""
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    with caller, suppress(OSError):
        caller.sendall(bytes([code if code >= 0 else 128 - code]))


def _forked(caller: socket.socket) -> int:
    """Run the program for a caller in a process of its own, whose id the caller gets."""
    data, streams, _, _ = socket.recv_fds(caller, 4, 3)
    text = caller.recv(int.from_bytes(data, "big"), socket.MSG_WAITALL)
    if not (pid := os.fork()):
        _run(text.decode(errors="surrogateescape").split("\0"), streams)
    for stream in streams:
        os.close(stream)
    with suppress(OSError):
        caller.sendall(pid.to_bytes(4, "big"))
    return pid


def _run(request: list[str], streams: list[int]) -> None:
    """Become the program, and end as it does."""
    cwd, parent, count, *words = request
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 3 + 64)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(word.split("=", 1) for word in words[int(count) :])
    os.getppid = lambda: int(parent)
    sys.argv[:] = words[: int(count)]
    if SHORT_PROGRAMS in os.environ:
        pod = sys.modules["minicluster.pod"]
        whole = pod.shipped()
        pod.shipped = lambda: {name: text.partition("\n")[0] + "\n" for name, text in whole.items()}
    fork_server.run(sys.modules["minicluster.__main__"])


def _preload() -> None:
    """Import and prepare what most callers need."""
    fork_server.imported("minicluster.__main__")
    for name in ("cli", "lifecycle.creation", "release.adopt", "release.caller"):
        importlib.import_module(f"minicluster.{name}")
    render = importlib.import_module("minicluster.render.postrender").render
    render(DOCUMENT, seed=bytes(32), allow_random=False)
    gc.freeze()  # a fork copies what the collector touches


if __name__ == "__main__":
    _preload()
    serve(socket.socket(fileno=int(sys.argv[1])))
