"""How our programs get to the lead: as the input of its `flux python`, so no image, view or ConfigMap has them."""

import json
import re
from functools import cache
from pathlib import Path

from minicluster.pod import programs, without_comments

#: Folder of the programs; they may import those of the pods
SENT = Path(__file__).parent / "sent"
_BOOT = """\
import os, sys
# modules of the image in PYTHONPATH hide none of Python's own
sys.path.insert(0, os.path.dirname(os.__file__))
import json, types
for name, text in json.loads(sys.stdin.readline()):
    module = sys.modules.setdefault(name, types.ModuleType(name))
    exec(compile(text, name, "exec"), vars(module))
"""
#: The code for `flux python -c`, on one line. It reads the program from the first line of its standard input. Send
#: nothing else until the program has written something: the reader of this line could take it
BOOT = f"exec({_BOOT!r})"
#: A line that imports a module
IMPORT = re.compile(r"^([ \t]*)(?:import|from) (\w+)", re.MULTILINE)


@cache
def first_line(program: str) -> str:
    """Return the line with a program and the modules that it imports, each after those that it imports itself.

    A module of the pods that only a function imports is not sent: the lead's pod has it.
    """
    texts: dict[str, str] = {}

    def add(name: str) -> None:
        text = program_text(name)
        for indent, module in IMPORT.findall(text):
            is_ours = (SENT / f"{module}.py").exists() or (not indent and f"{module}.py" in programs())
            if is_ours and module not in texts:
                add(module)
        texts[name] = text

    add(program)
    texts["__main__"] = texts.pop(program)
    return json.dumps([*texts.items()]) + "\n"


def program_text(program: str) -> str:
    """Return a program as `flux python -c` takes it; one that imports none of ours leaves its input to the command."""
    sent = SENT / f"{program}.py"
    file = sent if sent.exists() else programs()[sent.name]
    return without_comments(file.read_text(encoding="utf-8"))
