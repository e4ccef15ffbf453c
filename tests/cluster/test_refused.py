"""Values that the API server would refuse halfway through an install are refused before any object exists."""

from typing import Any

import pytest

from tools.releases import Release

TWO = {"a": {"path": "/d", "emptyDir": True}, "b": {"path": "/d", "claimName": "c"}}


def runner(**fields: Any) -> dict[str, Any]:
    return {"containers": [fields]}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "quantity": (runner(resources={"limits": {"memory": "4GB"}}), "containers[0].resources.limits.memory"),
    "size of a folder": (
        runner(volumes={"v": {"emptyDir": True, "emptyDirSizeLimit": "64MB"}}),
        "containers[0].volumes.v.emptyDirSizeLimit",
    ),
    "user": (runner(securityContext={"runAsUser": "root"}), "containers[0].securityContext.runAsUser"),
    "more pods than an Indexed Job may have": ({"size": 100_001}, "/size"),
    "request": (
        runner(resources={"limits": {"cpu": 1}, "requests": {"cpu": 2}}),
        "containers[0].resources.requests.cpu",
    ),
    "two at one path": (runner(volumes=TWO), "containers[0].volumes: a and b"),
    "on the view": (runner(volumes={"v": {"path": "/opt/software", "emptyDir": True}}), "containers[0].volumes.v.path"),
    "processes": ({"shareProcessNamespace": True, "pod": {"hostPID": True}}, "shareProcessNamespace and pod.hostPID"),
    "name": (
        {"nameOverride": "a" * 60, "flux": {"bursting": {"expose": {"type": "NodePort"}}}},
        "the Service aaaaa",
    ),
    "typo": ({"pod": {"template": {"spec": {"hostAlias": []}}}}, "pod.template.spec.hostAlias is not a field"),
    "variable": (runner(environment={"MINICLUSTER_HOME": "/x"}), "containers[0].environment.MINICLUSTER_HOME"),
}


@pytest.mark.any_helm
@pytest.mark.parametrize("name", WRONG)
def test_an_install_that_kubernetes_would_refuse_creates_nothing(release: Release, name: str) -> None:
    values, place = WRONG[name]
    assert place in release.refuse(command="install", **values)
    assert release.items() == []


@pytest.mark.any_helm
def test_a_network_policy_can_be_turned_on_and_off_on_a_live_cluster(release: Release) -> None:
    release.install(size=1)
    before = release.running(1)
    assert release.items("networkpolicies") == []
    release.upgrade(networkPolicy={"enabled": True})
    assert [one["metadata"]["name"] for one in release.items("networkpolicies")] == ["mc"]
    release.upgrade(networkPolicy={"enabled": False})
    assert release.items("networkpolicies") == []
    assert release.running(1) == before


def test_values_that_are_null_change_nothing_on_a_live_cluster(release: Release) -> None:
    release.install(size=2)
    before, objects = release.running(2), release.objects()
    release.upgrade(flux=None, pod=None, network=None, containers=None, deadlineSeconds=None, logging={"strict": None})
    assert release.objects() == objects
    assert release.running(2) == before
