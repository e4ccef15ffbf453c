"""The process of forks.py that forks: it has imported a module, whose `main` its forks run.

fork_server.py DESCRIPTOR MODULE FOLDER...: of its socket, and where modules are.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import socket
import sys
import threading
from types import ModuleType
from typing import Any

#: Bytes of the longest request
LONGEST = 1 << 20
#: The standard streams and their modes, in the order of their descriptors
STREAMS = {"stdin": "r", "stdout": "w", "stderr": "w"}


def _received(given: socket.socket) -> dict[str, Any] | None:
    """Return the next request in a process of its own, whose parent is that of this one; None at the end."""
    while True:
        data, descriptors, *_ = socket.recv_fds(given, LONGEST, len(STREAMS))
        if not data:
            return None
        request: dict[str, Any] = json.loads(data)
        for name in request["needs"]:
            importlib.import_module(name)
        number, its_number = os.pipe()
        if not (between := os.fork()):
            if own := os.fork():
                os.write(its_number, str(own).encode())
                os._exit(0)
            return {**request, "descriptors": descriptors}
        # from here on its parent is that of this one
        os.waitpid(between, 0)
        given.send(os.read(number, LONGEST))
        for descriptor in (*descriptors, number, its_number):
            os.close(descriptor)


def _become(request: dict[str, Any]) -> None:
    """Have streams, folder, environment and words, as a new process has them; then run what it begins with."""
    if request["session"]:
        os.setsid()
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.close()  # its descriptor, too
    for number, descriptor in zip(request["numbers"], request["descriptors"], strict=True):
        os.dup2(descriptor, number)
    os.closerange(3, 3 + 64)
    for number, (name, mode) in enumerate(STREAMS.items()):
        how = {"mode": mode, "closefd": False, "errors": "backslashreplace" if name == "stderr" else None}
        stream = os.fdopen(number, **how) if number in request["numbers"] else None
        for each in (name, f"__{name}__"):
            setattr(sys, each, stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["words"]
    exec(request["first"], {})


def imported(name: str) -> ModuleType:
    """Import a module, and with `minicluster` what its commands import, but for packages that few need."""
    module = importlib.import_module(name)
    if name == "minicluster.__main__":
        commands = importlib.import_module("minicluster.commands")
        for each in pkgutil.iter_modules(commands.__path__):
            # the protocol takes longer to import than all else, and each fork would copy two thirds more
            if not each.name.startswith("mcp_"):
                importlib.import_module(f"{commands.__name__}.{each.name}")
    # a process of its own copies what it changes, and the collector changes all that it sees
    gc.collect()
    gc.freeze()
    return module


def _end(code: object) -> None:
    """End as the interpreter does, but free nothing."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    os._exit(int(code or 0))


def run(module: ModuleType) -> None:
    """Run a module's `main`, and end as it does."""
    try:
        module.main()
    except SystemExit as end:
        _end(end.code)
    _end(0)


def _serve(given: socket.socket, module: ModuleType) -> None:
    if found := _received(given):
        _become(found)
        run(module)


if __name__ == "__main__":
    sys.path = sys.argv[3:]
    _serve(socket.socket(fileno=int(sys.argv[1])), imported(sys.argv[2]))
