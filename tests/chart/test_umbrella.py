"""The chart as a part of another one, whose `condition` turns it on and off by the value `enabled`."""

import json
from pathlib import Path
from typing import Any

import pytest
from support import CHART, EVERYTHING, SEED, Helm, by_name, load_all, umbrella

from tools.clients import run, values_text

SHARED: dict[str, Any] = {"global": {"imageRegistry": "registry.example.com", "deep": {"er": [1, {"a": None}]}}}
OPTIONS = ("--kube-version", "1.36.0", "--api-versions", "batch/v1/Job")


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """A chart that has ours twice."""
    return umbrella(tmp_path / "umbrella", "minicluster", "hpc")


def values(**parts: object) -> dict[str, Any]:
    return {
        **SHARED,
        "minicluster": {"nameOverride": "a", **({"enabled": parts["minicluster"]} if "minicluster" in parts else {})},
        "hpc": {"nameOverride": "b", "size": 2, **({"enabled": parts["hpc"]} if "hpc" in parts else {})},
    }


@pytest.mark.parametrize(
    ("parts", "jobs"),
    [
        ({}, {"a", "b"}),
        ({"minicluster": True, "hpc": True}, {"a", "b"}),
        ({"minicluster": True, "hpc": False}, {"a"}),
        ({"minicluster": None, "hpc": True}, {"a", "b"}),
        ({"minicluster": False, "hpc": False}, set()),
    ],
)
def test_a_condition_turns_a_minicluster_on_and_off(
    helm: Helm, parent: Path, parts: dict[str, Any], jobs: set[str]
) -> None:
    given = values(**parts)
    text = helm.template(*OPTIONS, "--post-renderer", "minicluster", chart=parent, values=given)
    found = by_name(text)
    assert {name for kind, name in found if kind == "Job"} == jobs
    assert ("ConfigMap", "other") in found
    if not jobs:
        assert set(found) == {("ConfigMap", "other")}
    for name in jobs:
        assert "enabled" not in json.loads(found["Job", name]["metadata"]["annotations"]["minicluster/immutable"])


def test_our_commands_render_a_parent_chart(helm: Helm, parent: Path, tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(values_text(values(minicluster=True, hpc=False)))
    (tmp_path / "seed").write_bytes(SEED)
    words = (
        "template",
        "rel",
        "--chart",
        parent,
        "-f",
        tmp_path / "values.yaml",
        "--curve-seed-file",
        tmp_path / "seed",
    )
    done = run("minicluster", *words, env=helm.environment)
    assert done.code == 0, done.both
    text = helm.template(chart=parent, values=values(minicluster=True, hpc=False), release="rel")
    piped = run("minicluster", "render", "--curve-seed-file", tmp_path / "seed", stdin=text, env=helm.environment)
    assert piped.code == 0, piped.both
    for found in (by_name(done.out), by_name(piped.out)):
        assert {name for kind, name in found if kind == "Job"} == {"a"}


@pytest.mark.parametrize("enabled", [True, None])
def test_enabled_has_no_effect_of_its_own(helm: Helm, enabled: bool | None) -> None:
    both = [helm.template(values=given) for given in ({}, {"enabled": enabled})]
    assert both[0] == both[1]


def test_nothing_is_rendered_of_a_chart_that_is_not_enabled(helm: Helm) -> None:
    everything = {"enabled": False, **EVERYTHING}
    for post in ((), ("--post-renderer", "minicluster")):
        # it tells the post-renderer that no step before it has lost anything
        assert load_all(helm.template(*post, values=everything)) == [
            {"apiVersion": "v1", "kind": "ConfigMapList", "items": []}
        ]


@pytest.mark.any_helm
def test_each_template_renders_nothing_when_the_chart_is_not_enabled() -> None:
    for path in (CHART / "templates").rglob("*"):
        if path.is_file() and path.suffix != ".tpl" and path.name != "configmaplist.yaml":
            lines = path.read_text(encoding="utf-8").rstrip().splitlines()
            assert (lines[1], lines[-1]) == ("{{- if .Values.enabled -}}", "{{- end }}"), path.name


@pytest.mark.any_helm
def test_enabled_is_a_boolean(helm4: Helm) -> None:
    text = helm4.fails("template", "x", CHART, "--set-string", "enabled=false")
    assert "enabled" in text
    assert "boolean" in text
