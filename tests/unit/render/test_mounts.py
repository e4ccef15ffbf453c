"""Whether /dev/shm is the runner's alone."""

from collections.abc import Callable
from typing import Any

import pytest
from minicluster.render.model import MiniClusterModel
from minicluster.render.mounts import has_own_shared_memory

Make = Callable[..., MiniClusterModel]


def mounted(**volumes: Any) -> list[dict[str, Any]]:
    return [{"volumes": volumes}]


def added(container: str, volume: str, path: str, kind: str = "containers") -> dict[str, Any]:
    return {"template": {"spec": {kind: [{"name": container, "volumeMounts": [{"name": volume, "mountPath": path}]}]}}}


MEMORY = {"emptyDir": True}
RUNNER = {"runFlux": True, "volumes": {"v": MEMORY}}


@pytest.mark.parametrize(
    ("spec", "is_own"),
    [
        ({}, True),
        # the container runtime's is that of all containers of the pod
        ({"pod": {"sharedMemory": "none"}}, False),
        ({"pod": {"hostIPC": True}}, False),
        ({"containers": mounted(v=MEMORY)}, True),
        ({"containers": mounted(v=MEMORY), "pod": {"hostIPC": True}}, False),
        ({"containers": mounted(v={"hostPath": "/dev/shm", "path": "/dev//shm/"})}, False),
        ({"containers": mounted(v={"claimName": "c", "path": "/data"})}, True),
        ({"containers": [RUNNER, {"name": "b", "volumes": {"v": {**MEMORY, "path": "/shm"}}}]}, False),
        ({"containers": [RUNNER, {"name": "b", "volumes": {"w": MEMORY}}]}, True),
        ({"pod": added("flux-sample", "mine", "/dev/shm")}, False),
        ({"pod": added("flux-sample", "mine", "/data")}, True),
        ({"pod": added("b", "minicluster-shm", "/shm")}, False),
        ({"pod": added("b", "minicluster-shm", "/shm", "initContainers")}, False),
    ],
)
def test_shared_memory_is_the_runner_s_alone_if_nothing_else_mounts_it(
    cluster_of: Make, spec: dict[str, Any], is_own: bool
) -> None:
    assert has_own_shared_memory(cluster_of(spec)) == is_own
