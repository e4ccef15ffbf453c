"""Groups: the host table, R and the quorum of a cluster with nodes unlike its own, and what is refused."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from minicluster.errors import SpecError
from minicluster.render import broker, resources, settings, work
from minicluster.render.model import MiniClusterModel

Make = Callable[[dict[str, Any]], MiniClusterModel]
GPU: dict[str, Any] = {
    "name": "gpu",
    "size": 2,
    "maxSize": 4,
    "properties": ["a100", "gpu"],
    "resources": {"limits": {"cpu": 8, "nvidia.com/gpu": 4}},
    "pod": {"nodeSelector": {"kind": "gpu"}},
}
SPOT: dict[str, Any] = {"name": "spot", "size": 0, "maxSize": 3, "cores": 2, "image": "spot:1"}
BOTH: dict[str, Any] = {
    "size": 1,
    "maxSize": 2,
    "groups": [GPU, SPOT],
    "containers": [{"image": "own:1", "cores": 1, "resources": {"limits": {"cpu": 16}}, "command": "work"}],
    "pod": {"nodeSelector": {"kind": "own"}, "priorityClassName": "high"},
}


def test_the_hosts_of_groups_follow_those_of_the_cluster(cluster_of: Make) -> None:
    cluster = cluster_of(BOTH)
    assert broker.bootstrap(cluster) == [
        {"host": "flux-sample-[0-1]"},
        {"host": "flux-sample-gpu-[0-3]"},
        {"host": "flux-sample-spot-[0-2]"},
    ]
    assert resources.registered(cluster) == 9


def test_each_group_has_resources_and_properties_of_its_own(cluster_of: Make) -> None:
    execution = json.loads(resources.resource_set(cluster_of(BOTH)))["execution"]
    assert execution["R_lite"] == [
        {"rank": "0-1", "children": {"core": "0"}},
        {"rank": "2-5", "children": {"core": "0-7", "gpu": "0-3"}},
        {"rank": "6-8", "children": {"core": "0-1"}},
    ]
    assert execution["properties"] == {"gpu": "2-5", "a100": "2-5", "spot": "6-8"}
    assert "properties" not in json.loads(resources.resource_set(cluster_of({})))["execution"]


def test_a_property_of_two_groups_has_the_ranks_of_both(cluster_of: Make) -> None:
    groups = [{**GPU, "properties": ["big"]}, {**SPOT, "properties": ["big"]}]
    execution = json.loads(resources.resource_set(cluster_of({**BOTH, "groups": groups})))["execution"]
    assert execution["properties"]["big"] == "2-5,6-8"


@pytest.mark.parametrize(
    ("more", "quorum"),
    [
        ({}, 3),
        ({"groups": [{**GPU, "minSize": 0}]}, 1),
        ({"groups": [{**GPU, "minSize": 1}, SPOT]}, 2),
        ({"maxSize": 1, "groups": [{**GPU, "maxSize": 2}]}, None),
        ({"size": 2, "minSize": 1}, 3),
    ],
    ids=str,
)
def test_the_quorum_counts_the_least_sizes_of_all_groups(
    cluster_of: Make, more: dict[str, Any], quorum: int | None
) -> None:
    assert broker.quorum(cluster_of({**BOTH, **more})) == quorum


def test_the_command_uses_the_nodes_of_all_groups(cluster_of: Make) -> None:
    assert work.submit(cluster_of({**BOTH, "tasks": 6}))[:6] == ["flux", "run", "-N", "3", "-n", "6"]


def test_the_pods_of_a_group_have_its_values_in_place_of_the_clusters(cluster_of: Make) -> None:
    gpu, spot = (group.cluster for group in cluster_of(BOTH).groups)
    assert (gpu.runner["image"], spot.runner["image"]) == ("own:1", "spot:1")
    assert (gpu.spec["pod"]["nodeSelector"], spot.spec["pod"]["nodeSelector"]) == ({"kind": "gpu"}, {"kind": "own"})
    assert gpu.spec["pod"]["priorityClassName"] == "high"
    assert gpu.spec["groups"] == []


def test_the_agent_and_other_programs_know_the_groups(cluster_of: Make) -> None:
    found = settings.agent(cluster_of(BOTH))
    assert (found["size"], found["max_size"]) == (1, 2)
    assert found["groups"] == [
        {"name": "gpu", "size": 2, "max_size": 4, "policy": None},
        {"name": "spot", "size": 0, "max_size": 3, "policy": None},
    ]


SCALED: dict[str, Any] = {**BOTH, "maxSize": 1, "autoscaling": {"enabled": True}}


def test_each_group_has_limits_for_the_autoscaler(cluster_of: Make) -> None:
    gpu = {**GPU, "autoscaling": {"min": 1, "max": 2, "priority": -1}}
    cluster = cluster_of({**SCALED, "groups": [gpu, SPOT]})
    assert [group["policy"] for group in settings.agent(cluster)["groups"]] == [
        {"min": 1, "max": 2, "priority": -1},
        {"min": 0, "max": 3, "priority": 0},
    ]
    # a lead that comes back does not wait for nodes that were scaled away
    assert broker.quorum(cluster) == 2


@pytest.mark.parametrize(
    ("spot", "message"),
    [
        (
            {"autoscaling": {"max": 4}},
            "groups[0].autoscaling.max is 4, its maxSize 3: lower it, or install with a larger",
        ),
        ({"autoscaling": {"min": 3, "max": 2}, "size": 2}, "groups[0].autoscaling.min is 3, its max 2: lower min"),
        ({"autoscaling": {"min": 1}}, "groups[0].size is 0, its autoscaling goes from 1 to 3: choose a size between"),
        ({"size": 2, "minSize": 1}, "groups[0].minSize is 1, its autoscaling.min 0: a lead that comes back would "),
        ({"autoscaling": {"min": -1}}, "groups[0].autoscaling.min is -1: must be at least 0"),
        ({"autoscaling": {"least": 1}}, "groups[0].autoscaling.least is not a field"),
    ],
    ids=str,
)
def test_wrong_limits_of_a_group_are_refused(cluster_of: Make, spot: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(f"MiniCluster flux-sample: {message}")):
        cluster_of({**SCALED, "groups": [SPOT | spot]})


def test_limits_without_an_autoscaler_are_refused(cluster_of: Make) -> None:
    with pytest.raises(SpecError, match=r"groups\[0\].autoscaling is set and autoscaling.enabled is off"):
        cluster_of({**BOTH, "groups": [{**SPOT, "autoscaling": {}}]})


def test_a_group_that_stays_is_refused_beside_scale_to_zero(cluster_of: Make) -> None:
    zero = {"autoscaling": {"enabled": True, "suspendAfterSeconds": 9}, "state": {"capacity": "1Gi"}}
    with pytest.raises(SpecError, match=r"groups.0..autoscaling.min is 1 and autoscaling.suspendAfterSeconds set"):
        runner = {**BOTH["containers"][0], "command": ""}
        spot = {**SPOT, "size": 1, "autoscaling": {"min": 1}}
        cluster_of({**SCALED, **zero, "interactive": True, "containers": [runner], "groups": [spot]})


def test_the_pods_of_each_group_know_their_cpus_and_gpus(cluster_of: Make) -> None:
    text = settings.shell(cluster_of({**BOTH, "groups": [GPU, SPOT | {"resources": {"limits": {"cpu": "500m"}}}]}))
    assert "mc_groups='gpu 8 CUDA_VISIBLE_DEVICES\nspot - \n'\n" in text


BURST = {
    "clusters": [{"name": "flux-sample", "size": 2}],
    "leadBroker": {"name": "root", "address": "192.0.2.7", "size": 1},
}
UNKNOWN = "the cores of groups[0], spot, are unknown, because its nodes may be unlike the lead's: set "


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"groups": [GPU, GPU]}, "groups[1].name is gpu, as of another group: give each a name of its own"),
        (
            {"groups": [{"name": "spot", "size": 1}], "containers": [{}]},
            f"{UNKNOWN}groups[0].resources.limits.cpu or groups[0].cores",
        ),
        ({"groups": [{**GPU, "size": 5}]}, "groups[0].size is 5, its maxSize 4: lower size, or install with"),
        ({"groups": [{**GPU, "minSize": 3}]}, "groups[0].minSize is 3, its size 2: lower minSize"),
        (
            {"groups": [{**GPU, "name": "g" * 50}]},
            f"the last pod of groups[0] would be flux-sample-{'g' * 50}-3, 64 characters: 63 are allowed; ",
        ),
        ({"groups": [{**GPU, "name": "Gpu"}]}, 'groups[0].name is "Gpu": must have only a-z, 0-9 and -, '),
        ({"groups": [{**GPU, "properties": ["a b"]}]}, 'groups[0].properties[0] is "a b": must have only letters, '),
        ({"groups": [{**GPU, "nodeSelector": {}}]}, "groups[0].nodeSelector is not a field"),
        ({"groups": [{"size": 2}]}, 'groups[0] is {"size": 2}: needs name'),
        (
            {"groups": [{**GPU, "pod": {"restartPolicy": "Always"}}]},
            'groups[0].pod.restartPolicy is "Always": must be one of Never',
        ),
        (
            {"groups": [{**GPU, "resources": {"limits": {"cpu": 1}, "requests": {"cpu": 2}}}]},
            "in groups[0], gpu: containers[0].resources.requests.cpu is 2, ",
        ),
        ({"groups": [{**GPU, "maxSize": 99_999}]}, "maxSize and the groups' come to 100001 hosts: "),
        *(
            (
                {"groups": [{**GPU, "pod": {field: value}}]},
                f"groups[0].pod.{field} differs from pod.{field}, and all pods have one: set it there",
            )
            for field, value in (
                ("onStop", "requeue"),
                ("terminationGracePeriodSeconds", 60),
                ("hostNetwork", True),
                ("disruptionBudget", True),
            )
        ),
        ({"flux": {"minimalService": True}}, "groups and flux.minimalService are both set: "),
        (
            {"flux": {"bursting": BURST}, "containers": [{"cores": 1}]},
            "groups and flux.bursting.leadBroker are both set: the nodes of a burst are alike; drop the groups, and "
            "join by a burst for each kind of nodes",
        ),
        (
            {"flux": {"bursting": {"clusters": [{"name": "flux-sample-gpu"}]}}},
            "flux.bursting.clusters has flux-sample-gpu, and groups[0] has hosts of that name: rename one of them",
        ),
        (
            {"flux": {"bursting": {"hostlist": "flux-sample-[0-1],vm,flux-sample-gpu-[0-3]"}}},
            "flux.bursting.hostlist is flux-sample-[0-1],vm,flux-sample-gpu-[0-3]: beside groups it must begin with "
            "flux-sample-[0-1],flux-sample-gpu-[0-3]",
        ),
        (
            {
                "gang": {"kind": "volcano"},
                "pod": {"schedulerName": "volcano"},
                "groups": [{**GPU, "pod": {"schedulerName": "other"}}],
            },
            "groups[0].pod.schedulerName is other, pod.schedulerName volcano, and one scheduler starts all "
            "pods of a gang: drop it",
        ),
        (
            {
                "gang": {"kind": "volcano"},
                "pod": {"schedulerName": "volcano"},
                "groups": [{**GPU, "pod": {"annotations": {"scheduling.k8s.io/group-name": "x"}}}],
            },
            "in groups[0], gpu: pod.annotations has scheduling.k8s.io/group-name and gang.kind is volcano, "
            "which sets it",
        ),
        ({"flux": {"brokerConfig": "a = 1"}}, "groups and flux.brokerConfig are both set: "),
    ],
    ids=str,
)
def test_a_wrong_group_is_refused_in_one_line(cluster_of: Make, more: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        cluster_of({**BOTH, **more})
    text = str(caught.value)
    assert text.startswith(f"MiniCluster flux-sample: {message}")
    assert "\n" not in text
