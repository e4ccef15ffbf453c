"""The files of the templates: their folders and names, their size, and texts that only one of them may contain."""

import re
from pathlib import Path

import pytest
from support import CHART

FOLDER = CHART / "templates"
TEMPLATES = sorted(path for path in FOLDER.rglob("*") if path.is_file())
MANIFESTS = [path for path in TEMPLATES if path.suffix == ".yaml"]
#: Lines of the longest one
MOST_LINES = 130


def name(path: Path) -> str:
    return path.relative_to(FOLDER).as_posix()


def places(pattern: str) -> list[str]:
    """Return the files in which a pattern occurs, once for each time."""
    return [name(path) for path in TEMPLATES for _ in re.findall(pattern, path.read_text(encoding="utf-8"))]


def test_each_component_has_a_folder() -> None:
    assert [name(path) for path in TEMPLATES if path.parent == FOLDER] == ["NOTES.txt"]  # Helm looks for it there


@pytest.mark.parametrize("path", TEMPLATES, ids=name)
def test_a_template_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("path", MANIFESTS, ids=name)
def test_a_template_is_named_after_the_kind_of_its_one_object(path: Path) -> None:
    kinds = re.findall(r"^kind: (\w+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert [kind.lower() for kind in kinds] == [path.stem.rpartition("-")[2]]


def test_live_objects_are_looked_up_in_one_template() -> None:
    assert places(r"\blookup \S+ \S+ \$root") == places(r"[({ ]lookup\s") == ["live/_lookup.tpl"]


def test_the_default_port_is_in_no_template() -> None:
    assert places("8050") == []


def test_versions_of_kubernetes_are_in_one_template() -> None:
    assert set(places(r'"1\.\d\d"')) == {"common/_version.tpl"}


def test_what_a_helper_returns_does_not_depend_on_what_was_rendered_before() -> None:
    # no template leaves anything in the root for the next one; these keep what they would find again
    assert set(places(r"\bset (?:\.|\$|\$root) ")) == {"common/_once.tpl", "live/_lookup.tpl"}
