"""Resource claims on a real API server: the devices of a driver are objects, which the scheduler gives to pods."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from quick import QuickCluster
from support import Helm

from tools.releases import Release

DRIVER = "gpu.example.com"
API = "resource.k8s.io/v1"
KINDS = "resourceclaims.resource.k8s.io,resourceclaimtemplates.resource.k8s.io"


def claim(count: int = 1) -> dict[str, Any]:
    """Return a claim of the values."""
    exactly = {"deviceClassName": DRIVER, "count": count}
    return {"name": "gpus", "spec": {"devices": {"requests": [{"name": "all", "exactly": exactly}]}}}


VALUES: dict[str, Any] = {
    "containers": [{"image": "a", "gpus": 1, "resources": {"claims": [{"name": "gpus"}]}}],
    "pod": {"resourceClaims": [claim()]},
}


@pytest.fixture(scope="module", autouse=True)
def driver(cluster: QuickCluster) -> Iterator[None]:
    """What a DRA driver publishes: a class, and three devices on one Kubernetes node."""
    node = "node-0"  # other tests have nodes of their own there, on which no pod of ours runs
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{n}"} for n in range(3)]
    cluster.create(
        {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": DRIVER}, "spec": {"selectors": [selector]}},
        {
            "apiVersion": API,
            "kind": "ResourceSlice",
            "metadata": {"name": "devices"},
            "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices},
        },
    )
    yield
    cluster.kubectl("delete", f"deviceclasses/{DRIVER}", "resourceslices/devices")


def allocated(release: Release) -> list[str]:
    """Return the devices of the pods' claims."""
    claims = release.items("resourceclaims.resource.k8s.io")
    results = [one.get("status", {}).get("allocation", {}).get("devices", {}).get("results", []) for one in claims]
    return sorted(result["device"] for one in results for result in one)


def test_each_pod_has_devices_of_its_own_while_the_cluster_grows_and_shrinks(release: Release) -> None:
    release.install(size=2, maxSize=4, **VALUES)
    release.running(2)
    assert len(set(allocated(release))) == 2
    template = release.get("resourceclaimtemplates.resource.k8s.io", "mc-gpus")
    release.upgrade(size=3)
    uids = release.running(3)
    assert allocated(release) == ["gpu-0", "gpu-1", "gpu-2"]
    release.upgrade(size=1)
    release.cluster.wait("the end of two claims", lambda: len(allocated(release)) == 1)
    assert release.running(1)[0] == uids[0]
    # no upgrade touched it: the API server would refuse another spec
    after = release.get("resourceclaimtemplates.resource.k8s.io", "mc-gpus")
    assert {**after["spec"], "uid": after["metadata"]["uid"]} == {
        **template["spec"],
        "uid": template["metadata"]["uid"],
    }
    release.ok("uninstall", "--wait")
    release.cluster.wait("the end of the claims", lambda: not release.items(KINDS))


def test_the_devices_of_a_live_cluster_can_not_change(release4: Release) -> None:
    release4.install(**VALUES)
    said = release4.refuse(pod={"resourceClaims": [claim(2)]})
    path = "pod.resourceClaims[0].spec.devices.requests[0].exactly.count"
    assert f"{path} can't change on the live MiniCluster mc: it is 1, asked is 2" in said
    release4.uninstall()  # there are three devices


@pytest.mark.any_helm
def test_a_user_with_the_role_edit_installs_a_cluster_with_claims(
    user: Helm, release4: Release, cluster: QuickCluster
) -> None:
    cluster.grant(release4.namespace)
    mine = dataclasses.replace(release4, helm=user)
    mine.install(**VALUES)
    assert mine.get("resourceclaimtemplates.resource.k8s.io", "mc-gpus")
    release4.uninstall()
