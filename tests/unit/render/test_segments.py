"""Segments: the properties by which jobs choose nodes that are near each other, and what is refused."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from minicluster.burst import plan
from minicluster.burst.address import Address
from minicluster.errors import SpecError
from minicluster.render import resources
from minicluster.render.model import MiniClusterModel
from support import deep

Make = Callable[[dict[str, Any]], MiniClusterModel]
RACK = "example.com/rack"
PLACED: dict[str, Any] = {
    "size": 8,
    "kueue": {"queueName": "q"},
    "pod": {"segments": {"size": 4, "topologyKey": RACK}},
}
GROUP: dict[str, Any] = {"name": "gpu", "size": 2, "maxSize": 5, "cores": 1}


def properties(cluster: MiniClusterModel) -> dict[str, str]:
    found: dict[str, str] = json.loads(resources.resource_set(cluster))["execution"].get("properties", {})
    return found


def test_the_index_of_a_host_gives_its_segment_also_of_one_that_may_come_later(cluster_of: Make) -> None:
    cluster = cluster_of({"size": 3, "maxSize": 10, "pod": {"segments": {"size": 4}}})
    assert properties(cluster) == {"segment=0": "0-3", "segment=1": "4-7", "segment=2": "8-9"}
    assert properties(cluster_of({"size": 8})) == {}


def test_each_group_has_segments_of_its_own(cluster_of: Make) -> None:
    own = {**GROUP, "name": "fat", "properties": ["big"], "pod": {"segments": {"size": 2}}}
    none = {**GROUP, "name": "spot", "pod": {"segments": {}}}
    cluster = cluster_of({"size": 4, "pod": {"segments": {"size": 4}}, "groups": [GROUP, own, none]})
    assert properties(cluster) == {
        "segment=0": "0-3",
        "gpu": "4-8",
        "segment=gpu-0": "4-7",
        "segment=gpu-1": "8",
        "fat": "9-13",
        "big": "9-13",
        "segment=fat-0": "9-10",
        "segment=fat-1": "11-12",
        "segment=fat-2": "13",
        "spot": "14-18",
    }


def test_the_hosts_of_bursts_have_no_segments(cluster_of: Make) -> None:
    bursts = {"clusters": [{"name": "b0", "size": 4}]}
    root = cluster_of({"size": 2, "pod": {"segments": {"size": 2}}, "flux": {"bursting": bursts}})
    assert properties(root) == {"segment=0": "0-1"}
    assert "pod" not in plan.values(root, plan.find(root, "b0"), 4, Address("192.0.2.1", 8050))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"pod": {"segments": {"topologyKey": RACK}}, "kueue": {"queueName": "q"}},
            "pod.segments has no size: give the number of nodes in a segment, or drop it",
        ),
        ({"pod": {"segments": {"size": 1}}}, "pod.segments.size is 1: must be at least 2"),
        (
            deep(PLACED, {"kueue": {"queueName": ""}}),
            f"pod.segments.topologyKey is {RACK} and kueue.queueName is unset: Kubernetes alone places no pods by "
            "their index; set the queue, drop topologyKey, or make each segment a group with a pod affinity",
        ),
        (
            deep(PLACED, {"kueue": {"elastic": True}}),
            f"pod.segments.topologyKey is {RACK} and kueue.elastic is true: Kueue places no segments of an elastic "
            "Job; drop one of them",
        ),
        (
            deep(PLACED, {"pod": {"annotations": {"kueue.x-k8s.io/podset-slice-size": "2"}}}),
            "pod.annotations has kueue.x-k8s.io/podset-slice-size, which pod.segments sets: drop the annotation",
        ),
        (deep(PLACED, {"size": 6}), "size is 6 and Kueue places whole segments of 4: give a multiple of 4"),
        (deep(PLACED, {"size": 2}), "size is 2 and Kueue places whole segments of 4: give a multiple of 4"),
        (
            deep(PLACED, {"groups": [{**GROUP, "size": 0}]}),
            "groups[0].size is 0 and Kueue places whole segments of 4: give a multiple of 4",
        ),
        (
            {"groups": [{**GROUP, "pod": {"segments": {"size": 2, "topologyKey": RACK}}}]},
            f"groups[0].pod.segments.topologyKey is {RACK} and kueue.queueName is unset: Kubernetes alone places no "
            "pods by their index; set the queue, drop topologyKey, or make each segment a group with a pod affinity",
        ),
        (
            {
                "pod": {"segments": {"size": 2}},
                "flux": {"bursting": {"leadBroker": {"name": "root", "address": "a", "size": 2}, "hostlist": "root-0"}},
            },
            "pod.segments and flux.bursting.leadBroker are both set: a burst has none; drop pod.segments",
        ),
        (
            {"pod": {"segments": {"size": 2}}, "flux": {"bursting": {"hostlist": "flux-sample-[0-3]"}}},
            "pod.segments and flux.bursting.hostlist are both set: give flux.bursting.clusters in place of hostlist",
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_segments_that_nothing_would_place_are_refused(cluster_of: Make, values: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=f"^{re.escape(f'MiniCluster flux-sample: {message}')}"):
        cluster_of(values)


def test_segments_that_kueue_places_whole_are_accepted(cluster_of: Make) -> None:
    groups = [{**GROUP, "size": 4}, {**GROUP, "name": "any", "size": 0, "pod": {"segments": {"size": 2}}}]
    cluster_of({**PLACED, "groups": groups})
