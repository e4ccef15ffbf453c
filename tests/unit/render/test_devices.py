"""What is a GPU for Flux, and what Flux doesn't know."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from minicluster.errors import SpecError
from minicluster.render import devices, postrender
from minicluster.render.constants import GPUS, NO_GPUS
from minicluster.render.model import MiniClusterModel
from support import GROUP, SEED

Make = Callable[..., MiniClusterModel]
#: Claims of the pod with these device classes
CLASSES = "deviceclass.resource.kubernetes.io/"
WAY = "set containers[0].gpus to the number that jobs may ask for, 0 for none"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvidia.com/gpu", "CUDA_VISIBLE_DEVICES"),
        ("nvidia.com/gpu.shared", "CUDA_VISIBLE_DEVICES"),
        ("nvidia.com/mig-1g.5gb", "CUDA_VISIBLE_DEVICES"),
        ("nvidia.com/mig-1g.10gb.me.shared", "CUDA_VISIBLE_DEVICES"),
        (f"{CLASSES}gpu.nvidia.com", "CUDA_VISIBLE_DEVICES"),
        ("amd.com/gpu", "ROCR_VISIBLE_DEVICES"),
        ("amd.com/cpx_nps4", "ROCR_VISIBLE_DEVICES"),
        ("gpu.intel.com/i915", "ZE_AFFINITY_MASK"),
        ("gpu.intel.com/xe", "ZE_AFFINITY_MASK"),
        ("google.com/tpu", "TPU_VISIBLE_CHIPS"),
        ("habana.ai/gaudi", "HABANA_VISIBLE_MODULES"),
        ("aws.amazon.com/neuroncore", "NEURON_RT_VISIBLE_CORES"),
        ("aws.amazon.com/neuron", ""),
        ("gpu.intel.com/xe_monitoring", None),
        ("nvidia.com/gpu2", None),
        ("xnvidia.com/gpu", None),
        ("nvidia.com/gpumem", None),
        ("cpu", None),
    ],
)
def test_each_gpu_has_the_variable_of_its_runtime(name: str, expected: str | None) -> None:
    assert devices.variable(name) == expected


def test_no_name_is_in_two_rows_of_the_table() -> None:
    names = [name for kind in GPUS for name in kind["resources"]] + NO_GPUS
    assert sorted(set(names)) == sorted(names)
    assert [name for name in names if sum(devices._matches(name, [other]) for other in names) > 1] == []


def claim(name: str, *classes: str) -> dict[str, Any]:
    requests: list[Any] = [{"name": f"r{n}", "exactly": {"deviceClassName": one}} for n, one in enumerate(classes)]
    return {"name": name, "spec": {"devices": {"requests": requests}}}


EITHER = {"devices": {"requests": [{"name": "r", "firstAvailable": [{"deviceClassName": "gpu.amd.com"}]}]}}


@pytest.mark.parametrize(
    ("limits", "claims", "expected"),
    [
        ({}, [], ""),
        ({"cpu": 4, "rdma/hca": 1, "example.com/npu": 1}, [], ""),
        ({"amd.com/gpu": 2}, [], "ROCR_VISIBLE_DEVICES"),
        ({"nvidia.com/gpu": 2, "nvidia.com/mig-1g.5gb": 1}, [], "CUDA_VISIBLE_DEVICES"),
        ({"amd.com/gpu": 2, "nvidia.com/gpu": 2}, [], ""),
        ({}, [claim("a", "gpu.intel.com")], "ZE_AFFINITY_MASK"),
        ({}, [claim("a", "gpu.example.com")], ""),
        ({}, [claim("a", "gpu.intel.com", "nic.example.com")], "ZE_AFFINITY_MASK"),
        ({}, [claim("a", "gpu.intel.com", "gpu.amd.com")], ""),
        ({"nvidia.com/gpu": 1}, [claim("a", "gpu.intel.com")], ""),
        # a claim that the runner doesn't use
        ({}, [claim("a"), claim("b", "gpu.intel.com")], ""),
        ({}, [{"name": "a", "spec": EITHER}], "ROCR_VISIBLE_DEVICES"),
        ({}, [{"name": "a", "resourceClaimName": "x"}], ""),
        ({}, [{"name": "a", "spec": {}}], ""),
    ],
    ids=str,
)
def test_a_task_is_told_its_gpus_by_the_one_variable_of_the_runners_devices(
    cluster_of: Make, limits: dict[str, Any], claims: list[Any], expected: str
) -> None:
    used = {"claims": [{"name": "a"}]} if claims else {}
    runner = {"gpus": 1, "resources": {"limits": limits, **used}}
    cluster = cluster_of({"containers": [runner], "pod": {"resourceClaims": claims}})
    assert devices.task_variable(cluster) == expected


UNCOUNTED: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"limits": {"cpu": 1, "hugepages-2Mi": "1Gi", "vpc.amazonaws.com/efa": 1, "rdma/a": 1, "amd.com/gpu": 1}}, []),
    (
        {"limits": {"example.com/npu": 1, "furiosa.ai/rngd": 1}},
        [
            f"containers[0].resources.limits.{name} looks like a device, and Flux doesn't know it: {WAY}"
            for name in ("example.com/npu", "furiosa.ai/rngd")
        ],
    ),
    (
        {"claims": [{"name": "a", "request": "x"}, {"name": "a", "request": "y"}]},
        [f"containers[0].resources.claims: Flux doesn't know how many devices a has: {WAY}"],
    ),
]


@pytest.mark.parametrize(("given", "expected"), UNCOUNTED, ids=str)
def test_a_device_that_flux_does_not_count_is_named(
    cluster_of: Make, given: dict[str, Any], expected: list[str]
) -> None:
    pod = {"resourceClaims": [{"name": "a", "resourceClaimName": "c"}]}
    assert list(devices.uncounted(cluster_of({"containers": [{"resources": given}], "pod": pod}))) == expected
    for gpus in (0, 2):
        cluster = cluster_of({"containers": [{"gpus": gpus, "resources": given}], "pod": pod})
        assert list(devices.uncounted(cluster)) == []
    # only the runner's devices are Flux's
    beside = {"name": "side", "resources": given}
    assert list(devices.uncounted(cluster_of({"containers": [{"runFlux": True}, beside], "pod": pod}))) == []


def test_the_post_renderer_tells_its_caller_of_such_a_device() -> None:
    spec = {"containers": [{"resources": {"limits": {"example.com/npu": 1}}}]}
    document = {"apiVersion": f"{GROUP}/v1", "kind": "MiniCluster", "metadata": {"name": "mc"}, "spec": spec}
    said: list[str] = []
    postrender.render(json.dumps(document).encode(), SEED, allow_random=False, say=said.append)
    assert said == [
        "warning: MiniCluster mc: containers[0].resources.limits.example.com/npu looks like a device, and Flux doesn't "
        f"know it: {WAY}"
    ]


def test_a_number_of_gpus_that_is_no_number_is_refused(cluster_of: Make) -> None:
    with pytest.raises(SpecError, match=r"containers\[0\].gpus is .two.: must be integer$"):
        cluster_of({"containers": [{"gpus": "two"}]})
