"""The limits that CONTRIBUTING names: lines of a file, of a function, of the entrypoint and of the golden files."""

import ast

import pytest
from support import PACKAGE, ROOT, SOURCES

from tools.budget import nodes

# one worker parses the sources
pytestmark = pytest.mark.xdist_group("sources")
SCRIPTS = sorted((ROOT / "plugin").rglob("*.sh"))


def test_no_file_has_more_than_250_lines() -> None:
    lines = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in [*SOURCES, *SCRIPTS]}
    assert len(lines) > 100
    assert {name: count for name, count in lines.items() if count > 250} == {}


def test_no_function_has_more_than_50_lines() -> None:
    found = {}
    for path in SOURCES:
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef) and node.end_lineno:
                found[f"{path.relative_to(ROOT)}:{node.name}"] = node.end_lineno - node.lineno + 1
    assert len(found) > 1000
    assert {name: count for name, count in found.items() if count > 50} == {}


def test_the_entrypoint_has_no_more_than_150_lines() -> None:
    assert len((PACKAGE / "pod/start/entrypoint.sh").read_text().splitlines()) <= 150


def test_the_golden_files_are_no_more_than_a_tenth_of_the_lines_of_tests() -> None:
    golden = [path for path in ROOT.glob("tests/chart/golden/**/*") if path.is_file()]
    of_golden, of_others = (
        sum(len(path.read_text().splitlines()) for path in paths) for paths in (golden, ROOT.glob("tests/**/*.py"))
    )
    assert len(golden) > 50
    assert of_golden <= 0.1 * (of_golden + of_others)


def test_each_file_of_tests_has_a_name_of_its_own() -> None:
    """Pytest imports them by their names alone."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert len(names) > 300
    assert {name for name in names if names.count(name) > 1} == set()
