"""Cores and GPUs of a node, from the values of the runner."""

from collections.abc import Callable
from typing import Any

import pytest
from minicluster.errors import MiniClusterError, SpecError
from minicluster.render import resources
from minicluster.render.model import MiniClusterModel
from minicluster.render.resources import NodeRange

Make = Callable[..., MiniClusterModel]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"cores": 3}, 3),
        ({"cores": 3, "resources": {"limits": {"cpu": 8}}}, 3),
        ({"resources": {"limits": {"cpu": 8}, "requests": {"cpu": 2}}}, 8),
        ({"resources": {"requests": {"cpu": 2}}}, 2),
        ({"resources": {"requests": {"cpu": "100m"}}}, 1),
        ({"resources": {"limits": {"memory": "1Gi"}}}, None),
    ],
    ids=str,
)
def test_cores_of_a_node_come_from_cores_or_the_cpu_resources(fields: dict[str, Any], expected: int | None) -> None:
    assert resources.cores(fields) == expected


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1_0", "\u0661"])
def test_a_number_of_python_that_is_not_a_quantity_is_refused(cluster_of: Make, value: str) -> None:
    with pytest.raises(MiniClusterError, match="must be a quantity"):
        cluster_of({"containers": [{"resources": {"limits": {"cpu": value}}}]})


@pytest.mark.parametrize("name", ["cpu", "nvidia.com/gpu"])
@pytest.mark.parametrize("value", ["4G", "2147483648", "8Gi", "1e400"])
def test_more_cpus_or_gpus_than_a_node_can_have_are_refused(name: str, value: str) -> None:
    runner = {"resources": {"limits": {name: value}}}
    with pytest.raises(SpecError) as caught:
        resources.cores(runner) if name == "cpu" else resources.gpus(runner)
    assert str(caught.value) == f"resources: {name} is {value!r}: give a number, e.g. 4 or 500m"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, 0),
        ({"requests": {"nvidia.com/gpu": 1}}, 0),
        ({"limits": {"nvidia.com/gpu": "2"}}, 2),
        ({"limits": {"nvidia.com/mig-1g.5gb": 2, "nvidia.com/mig-2g.10gb": "1", "cpu": 4, "rdma/hca": 8}}, 3),
        ({"limits": {"example.com/npu": 1}}, 0),
    ],
    ids=str,
)
def test_gpus_of_a_node_are_the_value_or_the_sum_of_the_limits(given: dict[str, Any], expected: int) -> None:
    assert resources.gpus({"resources": given}) == expected
    for value in (0, 5):
        assert resources.gpus({"gpus": value, "resources": given}) == value


@pytest.mark.parametrize(
    ("given", "requested", "whole"),
    [
        ({}, 0, None),
        ({"limits": {"cpu": 4}}, 4, 4),
        ({"limits": {"cpu": 4}, "requests": {"cpu": "2000m"}}, 2, 2),
        ({"requests": {"cpu": "500m"}}, 0.5, None),
        ({"requests": {"cpu": 0}, "limits": {"cpu": 1}}, 0, None),
    ],
    ids=str,
)
def test_requested_and_whole_cpus_come_from_requests_and_limits(
    given: dict[str, Any], requested: float, whole: int | None
) -> None:
    runner = {"resources": given}
    assert (float(resources.requested_cpus(runner)), resources.whole_cpus(runner)) == (requested, whole)


def test_the_resource_set_lists_the_nodes_of_the_cluster_and_its_bursts(cluster_of: Make) -> None:
    bursts = [{"size": 3, "cores": 8, "gpus": 1}, {"size": 1}]
    runner = {"resources": {"limits": {"nvidia.com/gpu": 2}}}
    cluster = cluster_of({"maxSize": 2, "containers": [runner], "flux": {"bursting": {"clusters": bursts}}})
    assert list(resources.nodes(cluster)) == [
        NodeRange("0-1", "flux-sample-[0-1]", None, 2),
        NodeRange("2-4", "burst-0-[0-2]", 8, 1),
        NodeRange("5", "burst-1-0", None, 2),
    ]
    assert resources.resource_set(cluster) == (
        '{"version": 1, "execution": {"R_lite": ['
        '{"rank": "0-1", "children": {"core": "own", "gpu": "0-1"}}, '
        '{"rank": "2-4", "children": {"core": "0-7", "gpu": "0"}}, '
        '{"rank": "5", "children": {"core": "own", "gpu": "0-1"}}], '
        '"starttime": 0.0, "expiration": 0.0, "nodelist": ["flux-sample-[0-1]", "burst-0-[0-2]", "burst-1-0"]}}'
    )
