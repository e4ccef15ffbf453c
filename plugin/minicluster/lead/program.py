"""How our programs get to the lead: as the input of its `flux python`, so no image, view or ConfigMap has them."""

import json
from functools import cache
from pathlib import Path

from minicluster.pod import programs

#: Folder of the programs; they may import those of the pods
SENT = Path(__file__).parent / "sent"
_BOOT = """\
import json, sys, types
for name, text in json.loads(sys.stdin.readline()):
    module = sys.modules.setdefault(name, types.ModuleType(name))
    exec(compile(text, name, "exec"), vars(module))
"""
#: The code for `flux python -c`, on one line. It reads the program from the first line of its standard input. Send
#: nothing else until the program has written something: the reader of this line could take it
BOOT = f"exec({_BOOT!r})"


@cache
def first_line(program: str, *modules: str) -> str:
    """Return the line with a program and the modules that it imports; a module comes after those that it imports."""
    return json.dumps([*((name, _text(name)) for name in modules), ("__main__", _text(program))]) + "\n"


def remote() -> str:
    """Return the line with the program that answers requests about jobs and nodes."""
    return first_line("remote", "described", "waiting", "replies", "followed")


def settle() -> str:
    """Return the line with the program that stops the queue and lets the jobs end."""
    return first_line("settle", "offers", "saved", "state", "requeue", "again")


def _text(name: str) -> str:
    sent = SENT / f"{name}.py"
    return (sent if sent.exists() else programs()[sent.name]).read_text(encoding="utf-8")
