"""The Deployment by whose replicas others request a size: a real one, with the real controllers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import scaler
from autoscale import Policy
from autoscaled import SCALES, again, agent, resize, size
from log import Once
from test_agent_access import may

from tools.releases import Release

VALUES: dict[str, Any] = {**SCALES, "autoscaling": {"enabled": True, "handle": True}}
Look = Callable[[], list[int]]


@pytest.fixture
def look(release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Look:
    """Return a function that looks as the agent does, and returns all requests so far."""
    requests: list[int] = []
    monkeypatch.setattr(scaler, "request_size", lambda _, asked: requests.append(asked))
    seen = scaler.Replicas()

    def once() -> list[int]:
        pod = agent(release, tmp_path)
        # the Deployment's controller writes its status at the same time
        again(lambda: seen.ask(None, pod, Once(), size(release), Policy(1, 8, 1, 60)))
        return requests

    return once


def written(release: Release) -> int:
    return int(release.get("deployment", "mc")["spec"]["replicas"])


def test_the_deployment_is_scaled_and_makes_no_pods(release: Release, look: Look, tmp_path: Path) -> None:
    release.install(**VALUES)
    uids = release.running(2)
    assert look() == []
    assert written(release) == 2
    release.kubectl("scale", "deployment", "mc", "--replicas=6")
    assert look() == [6]
    resize(agent(release, tmp_path), 4)
    look()
    assert written(release) == 4
    # Kubernetes has seen these replicas, and still made nothing
    generation = release.get("deployment", "mc")["metadata"]["generation"]
    release.cluster.wait(
        "the Deployment's controller",
        lambda: release.get("deployment", "mc")["status"].get("observedGeneration") == generation,
    )
    assert release.items("replicasets") == []
    assert set(release.running(4).items()) >= set(uids.items())
    shown = release.kubectl("get", "deployment", "mc", "--no-headers").split()
    assert shown[:4] == ["mc", "0/4", "0", "0"]
    selector = json.loads(release.kubectl("get", "--raw", scale_of(release)))["status"]["selector"]
    assert len(release.items("pods", f"--selector={selector}")) == 4
    release.ok("uninstall", "--wait")
    release.cluster.wait("nothing", lambda: release.items() + release.items("deployments") == [])


def scale_of(release: Release) -> str:
    return f"/apis/apps/v1/namespaces/{release.namespace}/deployments/mc/scale"


def test_no_upgrade_and_no_rollback_changes_the_replicas(release: Release, look: Look) -> None:
    release.install(**VALUES)
    look()
    release.kubectl("scale", "deployment", "mc", "--replicas=5")
    assert look() == [5]
    release.upgrade(autoscaling={**VALUES["autoscaling"], "idleSeconds": 30})
    release.upgrade(size=3)
    release.ok("rollback", "1")
    assert (written(release), look()) == (5, [5])
    release.upgrade(autoscaling={"enabled": True})
    assert release.items("deployments") == []
    release.upgrade(**VALUES)
    assert look() == [5], "a new Deployment is no request"
    assert written(release) == 2


@pytest.mark.any_helm
def test_the_agent_may_change_this_deployment_only(release4: Release) -> None:
    release4.install(**VALUES)
    verbs = ("get", "patch", "list", "delete", "update")
    assert {verb for verb in verbs if may(release4, verb, "deployments/mc")} == {"get", "patch"}
    assert not may(release4, "patch", "deployments/other")


def test_helm_does_not_wait_for_the_pods_that_a_deployment_never_has(release: Release) -> None:
    release.install("--wait", "--timeout=60s", **VALUES)
    assert set(release.running(2)) == {0, 1}


def resumed(release: Release) -> list[dict[str, Any]]:
    """Return the pods that Kubernetes made for the Deployment."""
    return [pod for pod in release.items("pods") if "pod-template-hash" in pod["metadata"]["labels"]]


@pytest.mark.any_helm
@pytest.mark.without("labels", "security", why="the pod that never runs must be admitted")
def test_a_deployment_that_somebody_resumes_has_pods_that_never_run(release4: Release) -> None:
    release4.install(**VALUES)
    release4.running(2)
    release4.kubectl("rollout", "resume", "deployment", "mc")
    release4.cluster.wait("a pod", lambda: resumed(release4) != [])
    [pod] = resumed(release4)
    assert pod["status"]["phase"] == "Pending"
    assert pod["spec"]["schedulingGates"] == [{"name": "minicluster/no-pods"}]

    def addresses() -> list[str]:
        endpoints = [one for piece in release4.items("endpointslices") for one in piece["endpoints"] or []]
        return [address for one in endpoints for address in one["addresses"]]

    release4.cluster.wait("the addresses of the MiniCluster's own pods", lambda: len(addresses()) == 2)


@pytest.mark.any_helm
def test_a_horizontal_pod_autoscaler_requests_its_least_size(release4: Release) -> None:
    """Without metrics that is all that it can do; its controller takes the Deployment for a target like any other."""
    release4.install(**VALUES)
    release4.running(2)
    release4.kubectl("autoscale", "deployment", "mc", "--min=3", "--max=6", "--cpu=50%")
    release4.cluster.wait("the request", lambda: written(release4) == 3)

    def conditions() -> dict[str, str]:
        found = release4.get("horizontalpodautoscaler", "mc")["status"].get("conditions", [])
        return {each["type"]: each["status"] for each in found}

    # its controller writes them after the request
    release4.cluster.wait("that it can scale", lambda: conditions().get("AbleToScale") == "True")
    # its controller would look each second until the end of all tests
    release4.kubectl("delete", "hpa", "mc")
