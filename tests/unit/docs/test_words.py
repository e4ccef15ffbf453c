"""One name for one thing: no class, and no module, has the name of another (CONTRIBUTING.md, Words)."""

import ast
from collections import Counter

from support import PACKAGE, SOURCES

#: Modules that may have the name of another: Python's own, and those of a room that says what each of them is.
SHARED_NAMES = {"__init__.py", "__main__.py"}
SHARING_ROOMS = {
    "commands",  # a module has the name of its command; what does the work in another room may have it too
    "render/refusals",  # a module has the name of the part of the spec of which it refuses values
}


def repeated(names: list[str]) -> dict[str, int]:
    return {name: count for name, count in Counter(names).items() if count > 1}


def test_no_two_classes_have_the_same_name() -> None:
    nodes = [node for path in SOURCES for node in ast.walk(ast.parse(path.read_text()))]
    classes = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    assert len(classes) > 100
    assert repeated(classes) == {}


def test_no_two_modules_have_the_same_name() -> None:
    paths = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")]
    names = [path.name for path in paths if str(path.parent) not in SHARING_ROOMS and path.name not in SHARED_NAMES]
    assert len(names) > 70
    assert repeated(names) == {}
