"""One name for one thing: classes of a folder, programs of the pods, constants (CONTRIBUTING.md, Words)."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from support import PACKAGE, ROOT, SOURCES

from tools.budget import nodes, sources

# one worker parses the sources
pytestmark = pytest.mark.xdist_group("sources")
#: Rooms whose programs are in one folder where they run, so they find each other by file name
FLAT = {"pod": 7, "lead/sent": 1}


def repeated(names: Iterable[object]) -> dict[object, int]:
    return {name: count for name, count in Counter(names).items() if count > 1}


def test_no_two_classes_of_a_folder_have_the_same_name() -> None:
    classes = [(path.parent, node.name) for path in SOURCES for node in nodes(path) if isinstance(node, ast.ClassDef)]
    assert len(classes) > 100
    assert repeated(classes) == {}


@pytest.mark.parametrize("room", FLAT)
def test_no_two_programs_of_a_pod_have_the_same_name(room: str) -> None:
    folders = {path.parent for path in (PACKAGE / room).rglob("[a-z]*.py")}
    assert len(folders) == FLAT[room]
    assert repeated(path.name for folder in folders for path in folder.glob("[a-z]*.py")) == {}


#: Former names of the code, each with the one that replaced it
FORMER = {
    "found": "what was found",
    "wrong": "failure",
    "well": "ok",
    "Told": "StyledText",
    "Found": "LiveCluster",
    "Kept": "LiveJob",
    "Given": "HandoverFields",
    "Wanted": "BurstSpec",
    "AskedRelease": "ReleaseOptions",
    "Created": "CreateReleaseOptions",
    "Asked": "what was asked",
    "StateTeller": "StateReporter",
    "Fate": "JobImpact",
    "Going": "AffectedJobs",
    "SizedJob": "ScaledJob",
    "NodeBook": "NodeHistory",
    "JobBook": "JobHistory",
    "lookover": "top_view",
    "filed": "html_export",
    "handed": "handover",
    "leftovers": "kvs_cleanup",
}


def test_a_former_name_does_not_come_back() -> None:
    paths = sources()
    assert len(paths) > 250
    used = {
        (path.relative_to(PACKAGE).as_posix(), name)
        for path in paths
        for name in (path.stem, *names(path))
        if name in FORMER
    }
    assert sorted(f"{path}: {name} is {FORMER[name]} now" for path, name in used) == []


def names(path: Path) -> Iterator[str]:
    """Yield the names that a module gives: of values, arguments, classes and functions."""
    for node in nodes(path):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name


def test_the_glossary_has_at_most_40_words() -> None:
    glossary = (ROOT / "docs" / "concepts.md").read_text().partition("## Glossary")[2]
    words = re.findall(r"^\| ([^|]+) \|", glossary, re.MULTILINE)[1:]
    assert words == sorted(set(words), key=lambda word: (word.lower(), word.swapcase()))
    assert 30 <= len(words) <= 40


#: What a number is of: a constant's name ends with it
UNITS = {
    *(
        "SECONDS",
        "DAYS",
        "BYTES",
        "KIB",
        "MIB",
        "CHARACTERS",
        "LINES",
        "COLUMNS",
        "LEVELS",
        "VALUES",
        "NAMES",
        "RECORDS",
        "REQUESTS",
    ),
    *("JOBS", "PODS", "NODES", "HOSTS", "BROKERS", "CORES", "CPUS", "REPLICAS", "CONNECTIONS", "GENERATIONS"),
    *("TRIES", "FAILURES", "TIMES", "PRESSES", "PART", "FACTOR", "CODE", "PORT", "PIXELS", "FLAGS"),
}


def constants(text: str) -> Iterator[tuple[str, ast.expr]]:
    """Yield the constants of a module with their values."""
    for node in ast.parse(text).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            both = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            pairs = zip(target.elts, node.value.elts, strict=True) if both else [(target, node.value)]
            yield from ((name.id, value) for name, value in pairs if isinstance(name, ast.Name) and name.id.isupper())


def is_number(value: ast.expr) -> bool:
    """Tell whether an expression is made of numbers alone."""
    nodes = list(ast.walk(value))
    parts = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    numbers = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return all(isinstance(node, parts) for node in nodes) and all(type(each) in (int, float) for each in numbers)


@cache
def constants_of_package() -> list[tuple[Path, str, ast.expr]]:
    """Return the file, name and value of each constant in the package."""
    return [
        (path.relative_to(PACKAGE), name, value)
        for path in sorted(PACKAGE.rglob("*.py"))
        if "chart" not in path.relative_to(PACKAGE).parts
        for name, value in constants(path.read_text())
    ]


def test_the_name_of_a_number_ends_with_its_unit() -> None:
    others = ((path, *each) for path in SOURCES if PACKAGE not in path.parents for each in constants(path.read_text()))
    numbers = [(path, name) for path, name, value in (*constants_of_package(), *others) if is_number(value)]
    assert len(numbers) > 100
    assert [f"{path}: {name}" for path, name in numbers if name.rpartition("_")[2] not in UNITS] == []


def test_the_name_of_a_number_of_the_shell_ends_with_its_unit() -> None:
    texts = {path.name: path.read_text() for path in PACKAGE.rglob("*.sh")}
    # a variable of the environment is set in a function
    lines = (line.split("#")[0] for text in texts.values() for line in text.split("\n") if line[:1].isupper())
    names = {name for line in lines for name in re.findall(r"(?<![$\w])([A-Z][A-Z_]*)=\d", line)}
    assert len(names) > 10
    assert [name for name in sorted(names) if name.rpartition("_")[2] not in UNITS] == []


def test_a_constant_has_one_value_in_the_package() -> None:
    values: dict[str, dict[str, list[str]]] = {}
    for path, name, value in constants_of_package():
        # what another module is asked for is its value
        is_same = isinstance(value, ast.Attribute) and value.attr == name
        if not is_same:
            values.setdefault(name, {}).setdefault(ast.dump(value), []).append(str(path))
    assert {name: [*found.values()] for name, found in values.items() if len(found) > 1} == {}


#: Rooms of programs that run in pods, without the package
OF_PODS = ("pod", "lead/sent")


def test_a_text_or_number_of_the_package_stands_in_one_module() -> None:
    modules: dict[str, list[str]] = {}
    for path, name, value in constants_of_package():
        if isinstance(value, ast.Constant) and not any(map(path.is_relative_to, OF_PODS)):
            modules.setdefault(name, []).append(str(path))
    assert {name: found for name, found in modules.items() if len(found) > 1} == {}
