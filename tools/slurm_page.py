"""Writes the tables of docs/reference/slurm.md from the options that the programs of the pods read.

python -m tools.slurm_page
"""

import importlib
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "slurm.md"
#: The programs find each other by file name
PROGRAMS = ROOT / "plugin" / "minicluster" / "pod" / "slurm"
MARKED = re.compile(r"(<!-- slurm (submit|others) -->\n).*?(<!-- end -->)", re.DOTALL)


def written(text: str) -> str:
    """Return the page with its tables."""
    sys.path.append(str(PROGRAMS))
    options, tables = (importlib.import_module(f"slurm_{name}") for name in ("options", "tables"))
    submit = ((_commands(option, options.SUBMITTERS), option) for option in options.SUBMIT_OPTIONS)
    others = (
        (command, option)
        for command, those in tables.OPTIONS_OF.items()
        for option in those
        if option.kind != options.EXACT
    )
    made = {"submit": _table(submit), "others": _table(others)}
    return MARKED.sub(lambda match: f"{match[1]}\n{made[match[2]]}\n{match[3]}", text)


def _commands(option: Any, letters: dict[str, str]) -> str:
    names = [name for name, letter in letters.items() if letter in option.commands]
    return "all" if len(names) == len(letters) else ", ".join(names)


def _table(rows: Iterable[tuple[str, Any]]) -> str:
    return "".join(["| option | of | how | what it becomes |\n|---|---|---|---|\n", *_lines(rows)])


def _lines(rows: Iterable[tuple[str, Any]]) -> Iterator[str]:
    for commands, option in rows:
        names = f"`{option.shown}`" + (f", `-{option.short}`" if option.short else "")
        text = option.text.replace("|", "\\|")
        yield f"| {names} | {commands} | {option.kind} | {text} |\n"


def main() -> None:
    """Write the page."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
