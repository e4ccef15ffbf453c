"""Modules import only from lower layers, and never in a circle."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from support import PACKAGE

#: The rooms that each room may import. The files beside them, such as errors.py, are for all, and import no room.
ROOMS = {
    "__main__": {"cli", "kubectl_completion"},
    "kubectl_completion": {"cli", "commands"},
    "cli": {"commands", "release", "render"},
    "commands": {"burst", "cluster", "convert", "kube", "live", "picture", "release", "render"},
    "burst": {"cluster", "kube", "lead", "live", "release", "render"},
    "sdk": {"cluster", "kube", "lead", "live", "picture", "release"},
    "picture": {"cluster", "kube", "lead", "live", "render"},
    "live": {"cluster", "kube", "lead", "release", "render"},
    "lead": {"cluster", "kube", "pod"},
    "release": {"convert", "kube", "render"},
    "convert": {"render"},
    "kube": set(),
    "cluster": {"kube", "render"},
    "render": {"pod"},
    "pod": set(),
}


def name(path: Path) -> str:
    """Return the name of a module in the package, "" for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {name(path): path for path in PACKAGE.rglob("*.py")}


def imports(module: str) -> Iterator[str]:
    """Yield the modules of the package that a module imports, also inside its functions."""
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("minicluster."):
            base = str(node.module).removeprefix("minicluster").lstrip(".")
            names = {f"{base}.{alias.name}".lstrip(".") for alias in node.names}
            yield from {one if one in MODULES else base for one in names}


@cache
def graph() -> dict[str, set[str]]:
    """Return the imports of each module; it costs a second, which each worker would pay at its start."""
    return {module: set(imports(module)) - {"", module} for module in MODULES}


def test_no_module_imports_from_a_higher_layer() -> None:
    pairs = [(one, other) for one, others in graph().items() for other in others]
    assert len(pairs) > len(MODULES)
    rooms = {(one.split(".")[0], other.split(".")[0]) for one, other in pairs}
    wrong = {(one, other) for one, other in rooms if other in ROOMS.keys() - ROOMS.get(one, set()) - {one}}
    assert wrong == set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert set(TopologicalSorter(graph()).static_order()) == set(MODULES)
