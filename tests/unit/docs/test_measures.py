"""The limits that CONTRIBUTING names: lines of a file, and of a function."""

import ast

from support import ROOT, SOURCES

SCRIPTS = sorted((ROOT / "plugin").rglob("*.sh"))


def test_no_file_has_more_than_250_lines() -> None:
    lines = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in [*SOURCES, *SCRIPTS]}
    assert len(lines) > 100
    assert {name: count for name, count in lines.items() if count > 250} == {}


def test_no_function_has_more_than_50_lines() -> None:
    found = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.end_lineno:
                found[f"{path.relative_to(ROOT)}:{node.name}"] = node.end_lineno - node.lineno + 1
    assert len(found) > 1000
    assert {name: count for name, count in found.items() if count > 50} == {}
