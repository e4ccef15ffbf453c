"""Python programs as processes that start in a tenth of the time: forks of one that has imported the package.

They do what a new interpreter would do, but for its imports, and for the options and variables of Python itself.
"""

import ctypes
import inspect
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.clients import Done

PR_SET_CHILD_SUBREAPER = 36
#: Bytes, more than a command line and its environment have
LONGEST = 1 << 20
#: A test may have another one
Popen = subprocess.Popen
#: The pipes of a process as Popen names them: the child's end and ours of each, ours first for what it prints
PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
SIGNATURE = inspect.signature(subprocess.Popen._execute_child)
#: One thread at a time
ASKING = threading.Lock()
PACKAGE = "minicluster.__main__"
SERVER = Path(__file__).with_name("fork_server.py")


def without_coverage(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which `make coverage` measures nothing, and imports nothing for that."""
    return {key: value for key, value in environment.items() if not key.startswith("COVERAGE_")}


class Server:
    """The process that forks, and has imported a module."""

    def __init__(self, module: str) -> None:
        self.socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)
        with its:
            words = [sys.executable, SERVER, str(its.fileno()), module, *sys.path]
            env = os.environ if module == PACKAGE else without_coverage(os.environ)
            self._process = Popen(words, env=env, pass_fds=[its.fileno()], start_new_session=True)

    def end(self) -> None:
        """End it."""
        self.socket.close()
        self._process.wait()


SERVERS: dict[str, Server] = {}


def end() -> None:
    """End all servers."""
    while SERVERS:
        SERVERS.popitem()[1].end()


def _adopted(module: str, request: Mapping[str, Any], descriptors: Sequence[int]) -> int:
    """Have a process forked, and become its parent, as of one that we had started."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    with ASKING:
        if module not in SERVERS:
            SERVERS[module] = Server(module)
        given = SERVERS[module].socket
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            socket.send_fds(given, [json.dumps(request).encode()], descriptors)
            return int(given.recv(LONGEST))
        finally:
            prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


class Forked(subprocess.Popen[Any]):
    """A `minicluster` with some words; or another ``module`` that has a `main`.

    Of its streams those in ``closed``, by descriptor, are closed; it finds other modules of ``needs`` imported, and
    runs some Python ``first``.
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        module: str = PACKAGE,
        closed: Sequence[int] = (),
        needs: Sequence[str] = (),
        first: str = "",
        **how: Any,
    ) -> None:
        self._module, self._closed, self._needs, self._first = module, closed, needs, first
        super().__init__([module, *words], **how)

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        """Wait for its end, and bring that about after an error."""
        if kind:
            self.kill()
        super().__exit__(kind, *rest)

    def _execute_child(self, *words: Any) -> None:
        """Replace the method that forks and executes."""
        given = SIGNATURE.bind(self, *words).arguments
        pipes = [given[name] for name in PIPES]
        its = [number if pipe == -1 else pipe for number, pipe in enumerate((pipes[0], pipes[3], pipes[5]))]
        kept = {number: own for number, own in enumerate(its) if number not in self._closed}
        request = {
            "needs": self._needs,
            "first": self._first,
            "words": list(map(str, given["args"])),
            "numbers": list(kept),
            "folder": str(given["cwd"] or Path.cwd()),
            "environment": dict(os.environ if given["env"] is None else given["env"]),
            "session": given["start_new_session"],
        }
        self.pid = _adopted(self._module, request, list(kept.values()))
        self._child_created = True
        self._close_pipe_fds(*pipes)


def forked(*words: str, stdin: str = "", **how: Any) -> Done:
    """Run a `minicluster` to its end."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with Forked(words, text=True, **{**pipes, **how}) as process:
        out, err = process.communicate(stdin, timeout=60)
    return Done(process.returncode, out, err)
