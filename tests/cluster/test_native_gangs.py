"""Kubernetes' own gangs, on an API server with their feature gates: it makes a gang of each Job that allows it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kube import GANG
from quick import QuickCluster
from simulated import started
from support import Helm, lines_with

from tools.clients import ProcessError, run
from tools.releases import Release

pytestmark = [
    pytest.mark.without("limits", "quota", why="its pods ask for what decides, or for nothing"),
    pytest.mark.any_helm,
]
GATES = "GenericWorkload=true,GangScheduling=true,WorkloadWithJob=true"
GROUPS = "podgroups.scheduling.k8s.io"
NATIVE = {"kind": "kubernetes"}
#: Requests with which a node of the cluster holds one pod.
ONE_PER_NODE = [{"resources": {"requests": {"cpu": 160}}}]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuickCluster]:
    with started(tmp_path_factory.mktemp("cluster"), gates=GATES) as cluster:
        yield cluster


@pytest.fixture
def as_before(copy_of_chart: Callable[..., Path]) -> Path:
    """Make a chart that leaves the pods without a group, as the chart did before it supported gangs."""
    makes_gangs = '(include "minicluster.makesGangs" .) }}{{ $policy'
    return copy_of_chart({"templates/gang/_gang.tpl": {makes_gangs: "false }}{{ $policy"}})


def policy(release: Release) -> Any:
    return release.get(GROUPS)["spec"]["schedulingPolicy"]


def test_a_minicluster_without_a_gang_stays_elastic_where_kubernetes_makes_gangs(release: Release) -> None:
    release.install(size=3, maxSize=4)
    uids = release.running(3)
    assert policy(release) == {"basic": {}}
    release.upgrade(size=4)
    assert release.running(4).items() > uids.items()
    release.upgrade(size=2)
    assert release.running(2).items() < uids.items()
    release.ok("rollback", "1")
    release.running(3)
    assert [group["metadata"]["name"] for group in release.items(GROUPS)] == ["mc"]
    release.ok("uninstall", "--wait")
    assert release.items(GROUPS) == []


def test_a_user_with_the_role_edit_installs_where_kubernetes_makes_gangs(
    user: Helm, release4: Release, cluster: QuickCluster
) -> None:
    cluster.grant(release4.namespace)
    release4.helm = user
    release4.install(size=2)
    release4.running(2)
    release4.ok("uninstall", "--wait")


def test_a_job_that_kubernetes_made_a_gang_keeps_its_size(release4: Release, as_before: Path) -> None:
    fresh, release4.chart = release4.chart, as_before
    release4.install(size=3, maxSize=4)
    release4.running(3)
    group = release4.items(GROUPS)[0]
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    with pytest.raises(ProcessError, match=GANG):
        release4.kubectl("patch", "job", "mc", "--patch", json.dumps({"spec": {"completions": 4, "parallelism": 4}}))
    release4.chart = fresh
    assert lines_with(
        release4.refuse(size=4),
        f"size can't change from 3 to 4: the MiniCluster mc is a gang, the PodGroup {group['metadata']['name']}, whose "
        "size is immutable before Kubernetes 1.37; uninstall mc first, or install under another name",
    )
    release4.upgrade(deadlineSeconds=1000)
    release4.running(3)


@pytest.fixture
def too_few_nodes(cluster: QuickCluster) -> Iterator[Callable[[], None]]:
    """Leave three nodes to new pods; the function that it returns brings the fourth back."""
    cluster.kubectl("cordon", "node-3")
    yield lambda: cluster.kubectl("uncordon", "node-3")
    cluster.kubectl("uncordon", "node-3")


def bound(release: Release) -> int:
    return sum("nodeName" in pod["spec"] for pod in release.pods())


def refused(release: Release) -> int:
    """Return for how many pods the scheduler has said that it has no node."""
    conditions = [condition for pod in release.pods() for condition in pod["status"].get("conditions", [])]
    return sum((each["type"], each["status"]) == ("PodScheduled", "False") for each in conditions)


def test_a_gang_of_kubernetes_starts_together_or_not_at_all(
    release4: Release, too_few_nodes: Callable[[], None]
) -> None:
    release4.install(size=4, gang=NATIVE, containers=ONE_PER_NODE)
    release4.cluster.wait("the scheduler's refusal", lambda: refused(release4) == 4)
    assert bound(release4) == 0
    too_few_nodes()
    release4.running(4, 60)
    release4.uninstall()


@pytest.mark.usefixtures("too_few_nodes")
def test_a_gang_with_min_size_starts_its_quorum_without_nodes_for_the_rest(release4: Release) -> None:
    release4.install(size=4, minSize=3, gang=NATIVE, containers=ONE_PER_NODE)
    release4.cluster.wait("the quorum", lambda: (bound(release4), refused(release4)) == (3, 1))
    release4.uninstall()


def test_an_upgrade_of_a_live_gang_may_change_values_but_not_the_size(release: Release) -> None:
    release.install(size=3, maxSize=4, gang=NATIVE)
    uids = release.running(3)
    refusal = "size can't change from 3 to 2: the MiniCluster mc is a gang, the PodGroup mc, whose size"
    assert lines_with(release.refuse(size=2), refusal)
    environment = release.helm.environment | {"HELM_BIN": release.helm.name}
    done = run("minicluster", "scale", "-n", release.namespace, "mc", "4", env=environment)
    assert done.code
    assert refusal.replace("to 2", "to 4") in done.err
    assert len(done.err.splitlines()) == 1
    release.upgrade(minSize=2, suspend=True)
    release.cluster.wait("the end of the pods", lambda: not release.live_pods())
    release.upgrade(suspend=False)
    assert release.running(3) != uids
    assert policy(release) == {"gang": {"minCount": 3}}
    assert "gang.kind can't change" in release.refuse(gang={})


def test_autoscaling_of_a_gang_of_kubernetes_is_refused(release4: Release) -> None:
    refusal = release4.refuse(command="install", size=1, maxSize=2, gang=NATIVE, autoscaling={"enabled": True})
    assert "autoscaling is on and gang.kind is kubernetes, and Kubernetes 1.36 fixes the size of a gang" in refusal


def test_an_install_is_refused_while_the_old_pod_group_is_being_deleted(release: Release) -> None:
    release.install(size=2)
    release.running(2)
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    release.kubectl("patch", GROUPS, "mc", "--type=merge", "--patch", json.dumps(held))
    release.uninstall()
    assert "the PodGroup mc is being deleted: wait until it and the pods" in release.refuse(command="install")
    held["metadata"]["finalizers"] = []
    release.kubectl("patch", GROUPS, "mc", "--type=merge", "--patch", json.dumps(held))
    release.cluster.wait("the end of the group", lambda: not release.items(GROUPS))
    release.install()
    release.running(2)


def groups_of(size: int) -> list[dict[str, Any]]:
    return [{"name": "gpu", "size": size, "maxSize": 2, "cores": 1}, {"name": "spot", "size": 0, "cores": 1}]


def test_a_gang_of_kubernetes_has_the_pods_of_all_groups(release4: Release, too_few_nodes: Callable[[], None]) -> None:
    release4.install(size=2, gang=NATIVE, groups=groups_of(2), containers=ONE_PER_NODE)
    release4.cluster.wait("the scheduler's refusal", lambda: all_pods(release4) == [False] * 4)
    assert policy(release4) == {"gang": {"minCount": 4}}
    too_few_nodes()
    release4.cluster.wait("the gang", lambda: all_pods(release4) == [True] * 4, 60)
    assert lines_with(
        release4.refuse(groups=groups_of(1)),
        "size of the group gpu can't change from 2 to 1: the MiniCluster mc is a gang, the PodGroup mc, whose size",
    )
    release4.upgrade(deadlineSeconds=1000)
    assert all_pods(release4) == [True] * 4
    release4.uninstall()


def all_pods(release: Release) -> list[bool]:
    """Return for each pod of all groups whether it is on a node; nothing until the scheduler has looked at all."""
    pods = release.items("pods")
    is_looked_at = all("nodeName" in pod["spec"] or pod["status"].get("conditions") for pod in pods)
    return ["nodeName" in pod["spec"] for pod in pods] if is_looked_at else []
