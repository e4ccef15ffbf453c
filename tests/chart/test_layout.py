"""The files of the templates: their names, and texts that only one of them may contain."""

import re
from pathlib import Path

import pytest
from support import CHART

TEMPLATES = sorted(path for path in (CHART / "templates").rglob("*") if path.is_file())
MANIFESTS = [path for path in TEMPLATES if path.suffix == ".yaml"]


def places(pattern: str) -> list[str]:
    """Return the names of the files in which a pattern occurs, once for each time."""
    return [path.name for path in TEMPLATES for _ in re.findall(pattern, path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_a_template_is_named_after_the_kind_of_its_one_object(path: Path) -> None:
    kinds = re.findall(r"^kind: (\w+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert [kind.lower() for kind in kinds] == [path.stem.rpartition("-")[2]]


def test_live_objects_are_looked_up_in_one_template() -> None:
    assert places(r"\blookup \S+ \S+ \$root") == places(r"[({ ]lookup\s") == ["_live.tpl"]


def test_the_default_port_is_in_no_template() -> None:
    assert places("8050") == []


def test_versions_of_kubernetes_are_in_one_template() -> None:
    assert set(places(r'"1\.\d\d"')) == {"_version.tpl"}
