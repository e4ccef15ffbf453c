"""Evictions of a MiniCluster's pods, with the API server and the controllers that decide on them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from autoscaled import again, agent
from budget import DisruptionBudget
from quick import QuickCluster
from simulated import new_namespace
from support import Helm, lines_with
from test_agent_access import may

from tools.clients import ProcessError
from tools.releases import Release
from tools.tenant import SHARED

VALUES: dict[str, Any] = {"size": 3, "maxSize": 8, "pod": {"disruptionBudget": True}}
REFUSED = "TooManyRequests"
#: Holds the pods of these indexes, as the agent does once a period
Hold = Callable[..., None]


@pytest.fixture
def hold(release: Release, tmp_path: Path) -> Hold:
    def these(*indexes: int) -> None:
        kube = agent(release, tmp_path)
        # the controller writes the status at the same time
        again(lambda: DisruptionBudget().hold(kube, frozenset(indexes), 0, 10))

    return these


def held(release: Release) -> list[str]:
    """Return the indexes that the budget selects."""
    selector = release.get("poddisruptionbudget")["spec"].get("selector", {})
    return [index for each in selector.get("matchExpressions", []) for index in each["values"]]


def refused(release: Release, index: int) -> bool:
    """Evict the pod of an index, and say whether that was refused."""
    try:
        release.evict(release.pod(index))
    except ProcessError as error:
        assert lines_with(str(error), REFUSED)
        return True
    return False


@pytest.mark.any_helm
def test_an_idle_pod_is_evicted_and_a_busy_one_when_it_is_idle(release: Release, hold: Hold) -> None:
    release.install(**VALUES)
    release.running(3)
    # a new budget holds no pods until the agent runs
    assert release.get("poddisruptionbudget")["spec"] == {"minAvailable": 2**31 - 1}
    assert not refused(release, 1)
    uids = release.running(3)
    hold(0, 2)
    assert [refused(release, index) for index in (0, 2, 1)] == [True, True, False]
    after = release.running(3)
    assert [index for index in uids if after[index] != uids[index]] == [1]
    # a pod is held at once, before any controller has seen the change
    hold(0, 1)
    assert [refused(release, index) for index in (0, 1, 2)] == [True, True, False]
    # the budget counts the pods that it selects, so `kubectl get pdb` shows them
    release.running(3)
    release.cluster.wait("the controller", lambda: release.get("poddisruptionbudget")["status"]["currentHealthy"] == 2)
    status = release.get("poddisruptionbudget")["status"]
    assert (status["disruptionsAllowed"], status["expectedPods"]) == (0, 2)
    # a lead that nothing needs is evicted
    hold()
    assert held(release) == []
    assert not refused(release, 0)


def test_no_upgrade_and_no_rollback_changes_the_pods_that_are_held(release: Release, hold: Hold) -> None:
    release.install(**VALUES)
    hold(0, 2)
    release.upgrade(jobLabels={"a": "b"})
    release.upgrade(size=4)
    release.ok("rollback", "1")
    assert held(release) == ["0", "2"]
    # and nobody but the agent has this field
    hold(0, 1, 3)
    release.upgrade(size=4)
    assert held(release) == ["0", "1", "3"]
    release.ok("uninstall", "--wait")
    release.cluster.wait("nothing", lambda: release.items() + release.items("poddisruptionbudgets") == [])


def test_a_cluster_with_a_budget_can_scale_itself_later(release: Release, hold: Hold) -> None:
    release.install(**VALUES)
    uids = release.running(3)
    hold(0, 1)
    for scaling in ({"enabled": True}, {"enabled": False}):
        release.upgrade(autoscaling=scaling)
        allowed = {verb: may(release, verb, "jobs/mc") for verb in ("get", "patch")}
        assert set(allowed.values()) == {scaling["enabled"]}
        assert may(release, "patch", "poddisruptionbudgets/mc")
    assert held(release) == ["0", "1"]
    assert release.running(3) == uids


WAY = "uninstall mc first, which loses its queue, or install under another name"
CHANGE = "can't change on the live MiniCluster mc: it is"


@pytest.mark.any_helm
@pytest.mark.parametrize(
    ("installed", "refused"),
    [
        (
            {"autoscaling": {"enabled": True}},
            [
                ({"disruptionBudget": True}, f"pod.disruptionBudget {CHANGE} false"),
                ({"evictable": True}, f"pod.evictable {CHANGE} (unset)"),
            ],
        ),
        (
            {"pod": {"disruptionBudget": True}},
            [({}, f"pod.disruptionBudget {CHANGE} true")],
        ),
    ],
    ids=["on", "off"],
)
def test_whether_pods_may_be_evicted_is_immutable(
    release4: Release, installed: dict[str, Any], refused: list[tuple[dict[str, Any], str]]
) -> None:
    release4.install(size=2, maxSize=8, **installed)
    for asked, message in refused:
        text = release4.refuse(pod=asked)
        assert lines_with(text.replace("\\n", "\n"), message)
        assert lines_with(text, WAY)


@pytest.mark.any_helm
def test_the_agent_may_change_this_budget_only(release4: Release) -> None:
    release4.install(**VALUES)
    verbs = ("get", "patch", "list", "delete", "update", "create")
    assert {verb for verb in verbs if may(release4, verb, "poddisruptionbudgets/mc")} == {"get", "patch"}
    assert not may(release4, "patch", "poddisruptionbudgets/other")
    # without autoscaling it may do nothing else
    for verb, what in (("get", "jobs/mc"), ("patch", "jobs/mc"), ("create", "events"), ("patch", "pods/mc-0")):
        assert not may(release4, verb, what)


@pytest.mark.any_helm
def test_the_role_edit_is_enough_for_a_budget_without_rbac(user: Helm, cluster: QuickCluster) -> None:
    namespace = new_namespace(cluster)
    cluster.grant(namespace, "edit")
    release = Release(user, cluster, namespace, world=SHARED)
    release.install(**VALUES, autoscaling={"rbac": False})
    release.running(3)
    release.upgrade(size=2)
    assert not may(release, "patch", "poddisruptionbudgets/mc")
    release.ok("uninstall", "--wait")
