"""How our programs get to the lead, whose Flux runs them: by its input, so no image, view or ConfigMap has them."""

import json
from collections.abc import Mapping
from pathlib import Path

_BOOT = """\
import json, sys, types
for name, text in json.loads(sys.stdin.readline()):
    module = sys.modules.setdefault(name, types.ModuleType(name))
    exec(compile(text, name, "exec"), vars(module))
"""
#: What `flux python -c` runs, on one line: it takes the program from the first line of its standard input
BOOT = f"exec({_BOOT!r})"


def first_line(program: Path, **modules: Path) -> str:
    """Return the line with a program and the modules that it imports by their names."""
    files: Mapping[str, Path] = {**modules, "__main__": program}
    return json.dumps([[name, path.read_text(encoding="utf-8")] for name, path in files.items()]) + "\n"
