"""Jobs in pods whose devices come from a DRA driver: they see them, and no two share one.

The driver is that of dra-example-driver, whose devices are variables of the container; its DeviceClass must be there.
"""

import json
from typing import Any

import pytest
from pod_jobs import QUIET, submit
from real_cluster import IN_PODS, Install

from tools import testbed
from tools.clients import ProcessError, until
from tools.releases import STEP_SECONDS, FluxRelease

pytestmark = IN_PODS
CLASS = "gpu.example.com"
#: Prints the devices that the task's pod was given: the variables of a job are those of the lead.
DEVICES = "tr '\\0' '\\n' </proc/1/environ | sed -n 's/^GPU_DEVICE_[0-9]*=//p'"
IDS = 'echo "$CUDA_VISIBLE_DEVICES"'


@pytest.fixture(scope="module", autouse=True)
def driver() -> None:
    """Skip where the cluster has no such devices."""
    try:
        testbed.kubernetes().kubectl("get", "deviceclass", CLASS)
    except ProcessError:
        pytest.skip(f"the cluster has no DeviceClass {CLASS}: install dra-example-driver")


def with_devices(release: Install, size: int, devices: int) -> FluxRelease:
    """Return a cluster whose pods have some devices each, once all nodes are up."""
    requests = [{"name": "all", "exactly": {"deviceClassName": CLASS, "count": devices}}]
    claim = {"name": "gpus", "spec": {"devices": {"requests": requests}}}
    values: dict[str, Any] = {**QUIET, "size": size, "pod": {"resourceClaims": [claim]}}
    cluster = release(values, {"cores": 2, "gpus": devices, "resources": {"claims": [{"name": "gpus"}]}})
    cluster.wait_for("0" if size == 1 else f"0-{size - 1}")
    return cluster


def allocated(cluster: FluxRelease) -> list[str]:
    """Return the devices that the claims of the pods have."""
    claims = json.loads(cluster.kubectl("get", "resourceclaims", "--output=json"))["items"]
    return sorted(one["device"] for claim in claims for one in claim["status"]["allocation"]["devices"]["results"])


def test_a_job_sees_the_devices_of_its_pod_and_two_jobs_do_not_share_one(release: Install) -> None:
    cluster = with_devices(release, size=1, devices=2)
    assert sorted(cluster.flux(0, "run", "-g2", "sh", "-c", DEVICES).split()) == allocated(cluster)
    per_task = ("-n2", "-g1", "-ogpu-affinity=per-task")
    assert sorted(cluster.flux(0, "run", *per_task, "sh", "-c", IDS).split()) == ["0", "1"]
    assert cluster.flux(0, "run", "sh", "-c", IDS) == "-1\n"
    jobs = [submit(cluster, "-g1", "sh", "-c", f"{IDS}; until [ -e /tmp/end ]; do sleep 0.2; done") for _ in range(3)]

    def states() -> list[str]:
        return cluster.flux(0, "jobs", "-a", "-n", "-o", "{state}", *jobs).split()

    until(lambda: sorted(states()) == ["RUN", "RUN", "SCHED"], STEP_SECONDS, "two of three jobs that run")
    cluster.exec(0, "touch", "/tmp/end")
    assert sorted(cluster.flux(0, "job", "attach", job).strip() for job in jobs[:2]) == ["0", "1"]
    assert cluster.flux(0, "job", "attach", jobs[2]).strip() in ("0", "1")


def test_the_pods_of_a_cluster_have_devices_of_their_own(release: Install) -> None:
    cluster = with_devices(release, size=2, devices=1)
    seen = cluster.flux(0, "run", "-N2", "-n2", "-g1", "sh", "-c", DEVICES).split()
    assert sorted(seen) == allocated(cluster)
    assert len(set(seen)) == 2
    # each pod numbers its own from 0
    assert cluster.flux(0, "run", "-N2", "-n2", "-g1", "sh", "-c", IDS).split() == ["0", "0"]
