"""A value that a user sets to null, and a section that is empty, have their defaults."""

import functools
import json
import operator
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from batch import Batch, case
from minicluster.render import postrender
from support import CHART, SEED, Helm, deep, load_all, nested
from support import DEFAULTS as VALUES

# one worker renders all
pytestmark = pytest.mark.xdist_group("defaults")
DEFAULTS = CHART / "files" / "defaults.json"
#: Values that turn on the optional objects.
ON: dict[str, Any] = {
    "size": 2,
    "maxSize": 3,
    "metrics": {"enabled": True},
    "autoscaling": {"enabled": True},
    "services": [{"name": "web", "image": "a", "ports": [80]}],
    "flux": {"bursting": {"expose": {"type": "NodePort"}}},
}
OPTIONS = ("--api-versions", "monitoring.coreos.com/v1/PodMonitor")


def paths(values: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in values.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from paths(value, (*path, key))


def test_defaults_json_has_the_defaults_of_values_yaml(update_golden: bool) -> None:
    if update_golden:
        DEFAULTS.write_text(json.dumps(VALUES, indent=2) + "\n", encoding="utf-8")
    assert json.loads(DEFAULTS.read_text(encoding="utf-8")) == VALUES, f"{DEFAULTS} differs: see --update-golden"


def test_each_template_begins_with_the_helper_of_the_defaults() -> None:
    templates = [path for path in (CHART / "templates").rglob("*.*") if path.suffix != ".tpl"]
    first = {path.name: path.read_text(encoding="utf-8").partition("\n")[0] for path in templates}
    assert len(first) > 10
    assert {name for name, line in first.items() if line != '{{- include "minicluster.defaults" . -}}'} == set()


def without(values: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """Return values without the one at a path."""
    key, *rest = path
    if key not in values:
        return values
    inner = without(values[key], tuple(rest)) if rest else {}
    return {**{k: v for k, v in values.items() if k != key}, **({key: inner} if inner else {})}


Render = Callable[[dict[str, Any]], list[dict[str, Any]]]
PATHS = list(paths(VALUES))
SECTIONS = [path for path in PATHS if isinstance(functools.reduce(operator.getitem, path, VALUES), dict)]
#: Each has a rendering of its own: a section hides what is in it, and a value of ON turns others off.
ALONE = [path for path in PATHS if path in SECTIONS or without(ON, path) != ON]
#: The other paths, by the key at the top
TOGETHER = {top: [path for path in PATHS if path[0] == top and path not in ALONE] for top in VALUES}


def nulls(values: dict[str, Any], unset: list[tuple[str, ...]]) -> dict[str, Any]:
    """Return values with null at some paths."""
    return functools.reduce(lambda found, path: deep(found, nested(path, None)), unset, values)


def objects(stream: str) -> list[dict[str, Any]]:
    """Return the objects after the post-renderer."""
    return load_all(postrender.render(stream.encode(), SEED, allow_random=False))


@pytest.fixture(scope="module")
def render(helm4: Helm, tmp_path_factory: pytest.TempPathFactory) -> Render:
    """Return a function from values to their objects, which keeps each rendering."""
    known = [ON, *(values for path in ALONE for values in (nulls(ON, [path]), without(ON, path)))]
    known += [nulls(ON, found) for found in TOGETHER.values()]
    batch = Batch(helm4, tmp_path_factory.mktemp("batch"), map(case, known), *OPTIONS)
    rendered = functools.cache(lambda text: objects(batch.stream(case(json.loads(text)))))
    return lambda values: rendered(json.dumps(values))


@pytest.mark.parametrize("path", ALONE, ids=".".join)
def test_a_value_that_is_null_has_its_default(render: Render, path: tuple[str, ...]) -> None:
    assert render(nulls(ON, [path])) == render(without(ON, path))


@pytest.mark.parametrize("top", [top for top, found in TOGETHER.items() if found])
def test_values_of_a_section_that_are_null_have_their_defaults(render: Render, top: str) -> None:
    assert render(nulls(ON, TOGETHER[top])) == render(ON)


def test_values_that_are_null_have_their_defaults_in_both_helms(helm: Helm) -> None:
    def render(values: dict[str, Any]) -> list[dict[str, Any]]:
        return objects(helm.template(*OPTIONS, values=values))

    assert render(nulls(ON, [path for found in TOGETHER.values() for path in found])) == render(ON)
    assert render(dict.fromkeys(VALUES)) == render({})


@pytest.mark.parametrize("empty", [None, {}], ids=["null", "empty"])
@pytest.mark.parametrize("depth", sorted({len(path) for path in SECTIONS}))
def test_sections_that_are_null_or_empty_have_their_defaults(render: Render, depth: int, empty: Any) -> None:
    # a section hides what is in it
    values = [nested(path, empty) for path in SECTIONS if len(path) == depth]
    assert render(functools.reduce(deep, values)) == render({})


def test_false_and_zero_are_not_replaced_by_defaults(render: Render) -> None:
    values = {"logging": {"strict": False}, "flux": {"logLevel": 0}, "backoffLimit": 0}
    settings = next(o["data"]["settings.sh"] for o in render(values) if "settings.sh" in o.get("data", {}))
    assert "mc_strict=''\n" in settings
    assert "-o-Slog-stderr-level=0" in settings
    assert next(o["spec"]["backoffLimit"] for o in render(values) if o["kind"] == "Job") == 0
