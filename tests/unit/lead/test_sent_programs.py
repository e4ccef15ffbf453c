"""The programs that clients send to the lead."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from minicluster.burst.demand import PROGRAM
from minicluster.lead.program import SENT, first_line, remote, settle
from minicluster.pod import programs

OURS = {Path(name).stem for name in [*programs(), *SENT.glob("*.py")] if Path(name).suffix == ".py"}


def imported(text: str) -> Iterator[str]:
    """Yield what a module imports at once: a function may import what the lead's pod has."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)


@pytest.mark.parametrize("line", [remote(), settle(), first_line(*PROGRAM)], ids=["remote", "settle", "burst_need"])
def test_a_sent_program_comes_after_all_modules_of_ours_that_it_imports(line: str) -> None:
    known: set[str] = set()
    for name, text in json.loads(line):
        assert OURS.intersection(imported(text)) <= known, name
        known.add(name)
