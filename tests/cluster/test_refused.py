"""Values that the API server would refuse halfway through an install are refused before any object exists."""

from typing import Any

import pytest

from tools.releases import Release


def runner(**fields: Any) -> dict[str, Any]:
    return {"containers": [fields]}


#: What an object of the chart's would be refused for after others were made; tests/unit/render/test_refusals.py and
#: test_load.py have the other values
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "quantity": (runner(resources={"limits": {"memory": "4GB"}}), "containers[0].resources.limits.memory"),
    "name": (
        {"nameOverride": "a" * 60, "flux": {"bursting": {"expose": {"type": "NodePort"}}}},
        "the Service aaaaa",
    ),
    "typo": ({"pod": {"template": {"spec": {"hostAlias": []}}}}, "pod.template.spec.hostAlias is not a field"),
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
