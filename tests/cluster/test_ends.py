"""How a Job ends, by the exit codes of its pods: Kubernetes' own controller with simulated nodes."""

import dataclasses
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from simulated import end
from support import BIN, Process

from tools.releases import Release

pytestmark = pytest.mark.any_helm


def failed(release: Release) -> int:
    return int(release.get("job")["status"].get("failed", 0))


def test_the_job_is_complete_when_the_lead_exits_with_0(release4: Release) -> None:
    release4.install(size=3)
    release4.running(3)
    end(release4, 0, 0)
    assert release4.condition("Complete")["reason"] == "SuccessPolicy"
    release4.cluster.wait("the end of the workers", lambda: set(release4.live_pods()) <= {0})
    assert failed(release4) == 0


@pytest.mark.parametrize("code", [3, 127, 143])
def test_the_job_fails_at_once_when_the_lead_fails(release4: Release, code: int) -> None:
    release4.install(size=2)
    release4.running(2)
    end(release4, 0, code)
    condition = release4.condition("Failed")
    assert condition["reason"] == "PodFailurePolicy"
    assert f"failed with exit code {code} " in condition["message"]
    assert len([pod for pod in release4.items("pods") if pod["metadata"]["name"].startswith("mc-0-")]) == 1


def delete(release: Release, index: int, *options: str) -> None:
    release.kubectl("delete", "pod", release.pod(index), "--wait=false", *options)


DISRUPTIONS: dict[str, Callable[[Release, int], None]] = {
    "stopped": lambda release, index: end(release, index, 85),
    "killed": lambda release, index: end(release, index, 137),
    "restarted": lambda release, index: end(release, index, 255),
    "evicted": lambda release, index: release.evict(release.pod(index)),
    "deleted": delete,
    "forced": lambda release, index: delete(release, index, "--force", "--grace-period=0"),
}


@pytest.mark.parametrize("index", [0, 1], ids=["lead", "worker"])
def test_a_pod_that_is_disrupted_is_replaced(release4: Release, index: int) -> None:
    # all at the same time: Kubernetes waits ten seconds before it replaces a pod that failed
    releases = {how: dataclasses.replace(release4, name=how, values={}) for how in DISRUPTIONS}
    uids = {}
    for how, release in releases.items():
        release.install(size=2)
        uids[how] = release.running(2)
    for how, release in releases.items():
        DISRUPTIONS[how](release, index)
    for how, release in releases.items():

        def replaced(release: Release = release, old: dict[int, str] = uids[how]) -> bool:
            pods = release.live_pods()
            return index in pods and pods[index]["metadata"]["uid"] != old[index]

        release.cluster.wait(f"pods instead of those {how}", replaced, 90)
        after = release.running(2)
        assert {i for i in after if after[i] != uids[how][i]} == {index}, how
        assert release.conditions() == {}, how
        assert how != "evicted" or failed(release) == 0


def test_an_eviction_does_not_count_toward_the_backoff_limit(release4: Release) -> None:
    release4.install(size=1, backoffLimit=0)
    uid = release4.running(1)[0]
    release4.evict(release4.pod(0))
    release4.cluster.wait("another pod", lambda: release4.running(1)[0] != uid, 60)
    assert failed(release4) == 0
    assert release4.conditions() == {}


def test_the_job_fails_at_its_backoff_limit(release4: Release) -> None:
    release4.install(size=1, backoffLimit=0)
    release4.running(1)
    end(release4, 0, 85)
    assert release4.condition("Failed")["reason"] in {"BackoffLimitExceeded", "FailedIndexes"}


def test_a_view_image_without_flux_fails_the_job_by_exit_code(release4: Release) -> None:
    release4.install(size=1, flux={"container": {"mode": "copy"}})
    rules: list[dict[str, Any]] = release4.get("job")["spec"]["podFailurePolicy"]["rules"]
    assert [rule["onExitCodes"]["containerName"] for rule in rules if "onExitCodes" in rule] == ["mc", "flux-view"]


def test_cleanup_removes_the_finished_job(release4: Release) -> None:
    release4.install(size=1, cleanup=True)
    release4.running(1)
    end(release4, 0, 0)
    release4.cluster.wait("the end of the Job", lambda: ("Job", "mc") not in release4.objects())
    assert ("Secret", "mc-curve") in release4.objects()


@pytest.mark.parametrize("code", [0, 1])
def test_helm_test_succeeds_or_fails_with_its_pod(release: Release, code: int) -> None:
    release.install(size=1)
    release.running(1)
    command = [BIN / release.helm.name, "test", "mc", "--namespace", release.namespace]
    with Process(
        command, env=release.helm.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as helm:

        def asked() -> bool:
            slices = [s for s in release.items("endpointslices") if s["metadata"]["name"].startswith("mc-ready-")]
            ready = [e for s in slices for e in s.get("endpoints") or [] if e["conditions"]["ready"]]
            return len(ready) == 1 and "mc-quorum" in release.kubectl("get", "pods", "--output=name")

        release.cluster.wait("the test, and an address of the lead", asked)
        release.cluster.end_pod(release.namespace, "mc-quorum", code)
        out = helm.communicate(timeout=60)[0]
    assert (helm.returncode == 0) == (code == 0), out
    assert ("Service", "mc-ready") not in release.objects()
