"""Modules import only from lower layers, and never in a circle."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter

import pytest

from tools import budget

#: The rooms that each room may import. The file beside them, errors.py, is for all.
ROOMS: dict[str, set[str]] = {
    "__main__": {"cli", "console"},
    "cli": {"commands", "console", "release", "render"},
    "commands": {
        *("burst", "cluster", "console", "convert", "documents", "exec", "experiments", "kube", "lifecycle", "picture"),
        *("pod", "release", "render", "sdk", "status", "waiting"),
    },
    "burst": {"cluster", "console", "documents", "flux", "kube", "lead", "release", "render", "status"},
    "sdk": {"cluster", "console", "exec", "kube", "lead", "lifecycle", "picture", "release", "status", "waiting"},
    "picture": {"cluster", "console", "flux", "kube", "lead", "status"},
    "experiments": {"console", "documents", "kube", "lifecycle", "release"},
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
# one worker parses the sources
pytestmark = pytest.mark.xdist_group("sources")
MODULES = {budget.module_name(path): path for path in budget.sources()}


def test_no_room_imports_one_above_it() -> None:
    assert len(budget.between_rooms()) > len(MODULES)
    arrows = {(budget.room(one), budget.room(other)) for one, other in budget.between_rooms()}
    assert {(one, other) for one, other in arrows if other in ROOMS and other not in ROOMS.get(one, ())} == set()
    assert {(one, other) for one in ROOMS for other in ROOMS[one]} - arrows == set()


def doors(room: str) -> set[str]:
    """Return the modules that a room opens to others, as the docstring of the room names them."""
    _, _, named = (ast.get_docstring(ast.parse(MODULES[room].read_text())) or "").partition("\n\nDoors: ")
    return {f"{room}.{door}" for door in named.rstrip(".").replace("\n", " ").split(", ") if door}


def test_a_room_is_entered_by_its_doors() -> None:
    entered = {other for _, other in budget.between_rooms() if "." in other}
    named = {door for room in ROOMS if room in MODULES and MODULES[room].name == "__init__.py" for door in doors(room)}
    assert entered - named == set()
    assert named - entered == set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert set(TopologicalSorter(budget.graph()).static_order()) == set(MODULES)


#: What a command may bring beside Click; each costs its start 3 to 12 ms
SLOW = {"yaml", "jinja2", "jsonschema_rs", "rich", "zmq", "hashlib", "tarfile", "concurrent.futures"}


#: What one command of a module needs, and those beside it would pay for
LATE = {
    "flux": {"minicluster.exec.slurm", "minicluster.exec.upload"},
    "jobs": {"minicluster.exec.submitted", "minicluster.status.simulated"},
    "lifecycle": {f"minicluster.lifecycle.{name}" for name in ("creation", "deletion", "replace", "scaling")},
    "nodes": {"minicluster.exec.copy", "minicluster.exec.run", "minicluster.waiting.logs"},
    "pictures": {"asyncio", "webbrowser", "minicluster.status.listing"},
    "setup": {"yaml", "minicluster.release.helm"},
    "status": {"minicluster.status.listing", "minicluster.status.why", "minicluster.waiting.wait"},
}


@pytest.mark.parametrize("module", LATE)
def test_a_command_does_not_import_what_only_its_neighbours_need(module: str) -> None:
    script = f"import sys; from minicluster.commands import {module}; print(*sorted(sys.modules))"
    names = subprocess.check_output([sys.executable, "-c", script], text=True).split()
    assert f"minicluster.commands.{module}" in names
    assert LATE[module] & {*names} == set()


def test_a_command_in_a_standing_cluster_imports_nothing_slow() -> None:
    """`run --in` shows its first line within a second; modules are counted, since seconds vary."""
    imports = "import sys; from minicluster.commands import run; from minicluster.exec import inside"
    script = f"{imports}; print(*sorted(sys.modules))"
    names = subprocess.check_output([sys.executable, "-c", script], text=True).split()
    assert SLOW & {*names} == set()
    assert len(names) < 250
