"""How our programs get to the lead, whose Flux runs them: by its input, so no image, view or ConfigMap has them."""

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
#: What `flux python -c` runs, on one line: it takes the program from the first line of its standard input. More input
#: may follow once the program has said something: until then this line's reader might take it
BOOT = f"exec({_BOOT!r})"


@cache
def first_line(program: str, *modules: str) -> str:
    """Return the line with a program and the modules that it imports, each after those that it imports itself."""
    return json.dumps([*((name, _text(name)) for name in modules), ("__main__", _text(program))]) + "\n"


def remote() -> str:
    """Return the line with what answers requests about jobs and nodes."""
    return first_line("remote", "described", "waiting")


def _text(name: str) -> str:
    sent = SENT / f"{name}.py"
    return (sent if sent.exists() else programs()[sent.name]).read_text(encoding="utf-8")
