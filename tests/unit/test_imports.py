"""Modules import only from lower layers, and never in a circle."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from support import PACKAGE

#: The rooms that each room may import. The file beside them, errors.py, is for all.
ROOMS: dict[str, set[str]] = {
    "__main__": {"cli", "console"},
    "cli": {"commands", "console", "release", "render"},
    "commands": {
        *("burst", "cluster", "console", "convert", "documents", "exec", "experiments", "kube", "lifecycle", "picture"),
        *("release", "render", "status", "waiting"),
    },
    "burst": {"cluster", "console", "documents", "flux", "kube", "lead", "release", "render", "status"},
    "sdk": {"cluster", "console", "kube", "lead", "lifecycle", "picture", "release", "status", "waiting"},
    "picture": {"cluster", "console", "flux", "kube", "lead", "render", "status"},
    "experiments": {
        *("cluster", "console", "documents", "kube", "lead", "lifecycle", "release", "render", "status", "waiting"),
    },
    "lifecycle": {
        *("cluster", "console", "documents", "exec", "kube", "lead", "release", "render", "status", "waiting"),
    },
    "exec": {"cluster", "console", "kube", "lead", "status", "waiting"},
    "waiting": {"cluster", "console", "kube", "lead", "status"},
    "status": {"cluster", "console", "flux", "kube", "lead", "render"},
    "lead": {"cluster", "console", "kube", "pod"},
    "release": {"console", "convert", "documents", "kube", "render"},
    "convert": {"console", "documents", "flux", "kube", "render"},
    "cluster": {"console", "kube", "render"},
    "render": {"console", "documents", "flux", "kube", "pod"},
    "kube": {"console"},
    "console": set(),
    "documents": set(),
    "flux": set(),
    "pod": set(),
}
#: A change that needs more of them says why it can't do with fewer
MOST_ARROWS = 122
MOST_DOORS = 103


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


def room_of(module: str) -> str:
    """Return the room of a module, or the module itself if it is beside the rooms."""
    return module.split(".", maxsplit=1)[0]


def between_rooms() -> list[tuple[str, str]]:
    """Return the imports of modules of other rooms."""
    pairs = [(one, other) for one, others in graph().items() for other in others if room_of(one) != room_of(other)]
    assert len(pairs) > len(MODULES)
    return pairs


def test_no_room_imports_one_above_it() -> None:
    arrows = {(room_of(one), room_of(other)) for one, other in between_rooms()}
    assert {(one, other) for one, other in arrows if other in ROOMS and other not in ROOMS.get(one, ())} == set()
    assert {(one, other) for one in ROOMS for other in ROOMS[one]} - arrows == set()
    assert len(arrows) <= MOST_ARROWS


def doors(room: str) -> set[str]:
    """Return the modules that a room opens to others, as the docstring of the room names them."""
    _, _, named = (ast.get_docstring(ast.parse(MODULES[room].read_text())) or "").partition("\n\nDoors: ")
    return {f"{room}.{door}" for door in named.rstrip(".").replace("\n", " ").split(", ") if door}


def test_a_room_is_entered_by_its_doors() -> None:
    entered = {other for _, other in between_rooms() if "." in other}
    named = {door for room in ROOMS if room in MODULES and MODULES[room].name == "__init__.py" for door in doors(room)}
    assert entered - named == set()
    assert named - entered == set()
    assert len(named) <= MOST_DOORS


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert set(TopologicalSorter(graph()).static_order()) == set(MODULES)
