"""Writes the tables of docs/reference/slurm.md from the options that the programs of the pods read.

python -m tools.slurm_page
"""

import importlib
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "slurm.md"
#: The programs find each other by file name
PROGRAMS = ROOT / "plugin" / "minicluster" / "pod" / "slurm"
#: In how many scripts of a public collection, as it was in 2024, each option of sbatch stands
FREQUENCY = json.loads((Path(__file__).parent / "slurm_frequency.json").read_text(encoding="utf-8"))
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
    made = {"submit": _told() + _table(submit, FREQUENCY["options"]), "others": _table(others)}
    return MARKED.sub(lambda match: f"{match[1]}\n{made[match[2]]}\n{match[3]}", text)


def _commands(option: Any, letters: dict[str, str]) -> str:
    names = [name for name, letter in letters.items() if letter in option.commands]
    return "all" if len(names) == len(letters) else ", ".join(names)


def _told() -> str:
    total, taken = FREQUENCY["scripts"], FREQUENCY["taken"]
    return (
        "Of the scripts for Slurm in the public collection `converged-computing/jobspec-database`, "
        f"{taken:,} of {total:,} are\ntaken, where nodes are large enough and partitions have the names of groups. "
        f"{total - taken:,} are refused, by the\nname or the value of an option. "
        "The column `of 1,000` has how many of them have an option.\n\n"
    )


def _table(rows: Iterable[tuple[str, Any]], counts: dict[str, int] | None = None) -> str:
    column = ("| of 1,000 ", "|---") if counts is not None else ("", "")
    return "".join(
        [f"| option | of {column[0]}| how | what it becomes |\n|---|---{column[1]}|---|---|\n", *_lines(rows, counts)]
    )


def _lines(rows: Iterable[tuple[str, Any]], counts: dict[str, int] | None) -> Iterator[str]:
    for commands, option in rows:
        names = f"`{option.shown}`" + (f", `-{option.short}`" if option.short else "")
        share = f"| {_share(counts.get(option.name, 0))} " if counts is not None else ""
        text = option.text.replace("|", "\\|")
        yield f"| {names} | {commands} {share}| {option.kind} | {text} |\n"


def _share(count: int) -> str:
    share = 1000 * count / FREQUENCY["scripts"]
    return f"{share:.0f}" if share >= 1 else "<1" if count else ""


def main() -> None:
    """Write the page."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
