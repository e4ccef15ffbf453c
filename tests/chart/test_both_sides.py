"""The templates and the post-renderer compute the same values."""

import json
from typing import Any

import pytest
from minicluster.cluster.pods import RUNNER
from minicluster.render import broker
from minicluster.render.constants import IMMUTABLE
from minicluster.render.resources import registered
from minicluster.render.upgrade import flat
from renderings import cluster, job, pod
from support import Helm, one

SIDECAR = {"name": "store", "image": "redis:7"}
LONG = "é\n'$HOME' `id` \"x\" " * 6


@pytest.mark.parametrize(
    ("containers", "name"),
    [
        ([{}], "minicluster"),
        ([{"name": "app"}], "app"),
        ([SIDECAR, {"name": "app", "runFlux": True}], "app"),
        ([{"runFlux": True}, SIDECAR], "minicluster"),
        ([{"name": "app", "runFlux": False}], "app"),
        ([{**SIDECAR, "runFlux": False}, {"name": "app"}], "app"),
        ([{"name": "app"}, {**SIDECAR, "runFlux": False}], "app"),
        ([SIDECAR, {"name": "app", "runFlux": True}, {**SIDECAR, "name": "web", "runFlux": False}], "app"),
    ],
)
def test_chart_and_post_renderer_choose_the_same_runner(helm4: Helm, containers: list[Any], name: str) -> None:
    text = helm4.template(values={"nameOverride": "minicluster", "containers": containers})
    found, made = cluster(text), pod(text)
    assert made["metadata"]["annotations"][RUNNER] == name
    assert (found.runner.get("name") or found.name) == name
    sidecars = [one["name"] for one in containers if one.get("name", name) != name]
    assert [one["name"] for one in found.sidecars] == sidecars
    assert [one["name"] for one in made["spec"].get("initContainers", []) if one["name"] != "flux-view"] == sidecars


@pytest.mark.parametrize(
    ("sizes", "least"),
    [
        ({"size": 4}, 4),
        ({"size": 4, "maxSize": 8}, 4),
        ({"size": 4, "minSize": 3}, 3),
        ({"size": 4, "maxSize": 8, "autoscaling": {"enabled": True, "min": 2}}, 2),
    ],
    ids=str,
)
def test_a_gang_starts_as_many_pods_as_the_quorum_of_the_post_renderer(
    helm4: Helm, sizes: dict[str, Any], least: int
) -> None:
    text = helm4.template(values={**sizes, "gang": {"kind": "volcano"}, "pod": {"schedulerName": "volcano"}})
    found = cluster(text)
    assert one(text, "PodGroup")["spec"]["minMember"] == least
    assert (broker.quorum(found) or registered(found)) == least


def test_chart_and_post_renderer_record_a_value_as_the_same_text(helm4: Helm) -> None:
    values = {
        "containers": [
            {"name": "app", "image": "a:1", "cores": 2, "environment": {"A": LONG, "B": "x" * 64, "C": "é" * 33}}
        ],
        "pod": {"labels": {"a.b/c": "1"}, "hostNetwork": True},
        "flux": {"brokerConfig": LONG, "optionFlags": ""},
    }
    recorded = json.loads(job(helm4.template(values=values))["metadata"]["annotations"][IMMUTABLE])
    asked = dict(flat(values))
    common = recorded.keys() & asked.keys()
    assert {path: recorded[path] for path in common} == {path: asked[path] for path in common}
    assert {path for path in common if asked[path].startswith("sha256:")} >= {"containers[0].environment.A"}
    assert len(common) > 5
