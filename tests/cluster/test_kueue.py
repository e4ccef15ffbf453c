"""MiniClusters that Kueue's real controller admits, suspends and lets grow."""

import json
from pathlib import Path
from typing import Any

import pytest
from autoscaled import agent, gated, resize
from kube import Kube
from minicluster.cluster.reasons import WORKLOADS
from placement import ADMISSION_SECONDS, Quota
from queued import (
    ELASTIC,
    beside,
    new_release,
    queued_helm,
    status,
    true_conditions,
    why,
    with_priority,
)
from quick import QuickCluster
from simulated import end
from support import Helm, lines_with

from tools import kueue_beside
from tools.kueue_beside import LOCAL_QUEUE
from tools.releases import Release

pytestmark = [
    pytest.mark.xdist_group("nodes"),
    pytest.mark.any_helm,
]


def wait_suspended(release: Release) -> None:
    def suspended() -> bool:
        job = release.get("job")
        # Kueue suspends first, then restores the pod template
        stopping = "kueue.x-k8s.io/stopping" in job["metadata"]["annotations"]
        return bool(job["spec"]["suspend"]) and not stopping and not release.pods()

    release.cluster.wait(f"the suspension of {release.name}", suspended)


def test_kueue_admits_a_minicluster_once_its_queue_has_room(
    helm4: Helm, queues: QuickCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = new_release(queued_helm(helm4, queues), queues, 3)
    first.install(size=2)
    first.running(2)
    second = beside(first)
    second.install(size=2)
    second.cluster.wait("the reason", lambda: "insufficient" in status(second, monkeypatch)["why"])
    found = status(second, monkeypatch)
    assert (found["state"], found["pods"]) == ("Suspended", [])
    assert found["why"].startswith(f"Kueue's queue {LOCAL_QUEUE}: couldn't assign flavors to pod set main: ")
    # any value of a waiting cluster may change: nothing is lost
    second.upgrade(size=3)
    assert second.get("job")["spec"]["suspend"] is True
    end(first, 0, 0)
    first.condition("Complete")
    second.running(3)


FLAVOR = {
    "nodeLabels": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
}


@pytest.mark.parametrize(
    "pod",
    [{}, {"nodeSelector": {"kubernetes.io/arch": "amd64"}, "tolerations": [{"key": "x"}]}],
    ids=["no fields", "fields of the user"],
)
def test_upgrades_keep_the_fields_that_kueue_set_and_restart_nothing(
    helm: Helm, queues: QuickCluster, pod: dict[str, Any]
) -> None:
    release = new_release(queued_helm(helm, queues), queues, 2, FLAVOR)
    release.install(size=2, pod=pod)
    uids = release.running(2)
    template = release.get("job")["spec"]["template"]["spec"]
    assert template["nodeSelector"] == {**pod.get("nodeSelector", {}), **FLAVOR["nodeLabels"]}
    release.upgrade(deadlineSeconds=1000)
    assert release.running(2) == uids
    # no manifest has the flavor. Kubernetes leaves it alone, but not in fields that a manifest has
    if pod:
        why = "field is immutable" if release.helm.major == 3 else 'conflicts with "kueue"'
        assert why in release.helm.fails("rollback", release.name, "1", "--namespace", release.namespace)
    else:
        release.ok("rollback", "1")
    assert release.running(2) == uids
    assert release.get("job")["spec"]["template"]["spec"] == template
    release.upgrade(deadlineSeconds=1500)
    assert release.running(2) == uids
    text = release.refuse(size=1)
    assert lines_with(
        text,
        "size can't change from 2 to 1 while the MiniCluster mc runs: Kueue would restart all pods, because it was "
        "installed without kueue.elastic; uninstall mc first, or install under another name",
    )
    text = release.refuse(kueue={"queueName": "other"})
    assert lines_with(
        text,
        f"kueue.queueName can't change while the MiniCluster mc runs: it is {LOCAL_QUEUE}, asked is other; "
        "uninstall mc first, or install under another name",
    )
    _activate(release, active=False)
    wait_suspended(release)
    release.upgrade(deadlineSeconds=2000)
    live = release.get("job")["spec"]
    assert live["suspend"] is True
    assert live["template"]["spec"].get("nodeSelector", {}) == pod.get("nodeSelector", {})
    assert live["template"]["spec"].get("tolerations", []) == pod.get("tolerations", [])
    _activate(release, active=True)
    release.running(2)
    release.upgrade(deadlineSeconds=3000)
    release.running(2)


def test_a_preempted_minicluster_starts_again(
    helm4: Helm, queues: QuickCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    low = new_release(queued_helm(helm4, queues), queues, 2)
    low.install(size=2, **with_priority(low, "low"))
    uids = low.running(2)
    high = beside(low, "high", **with_priority(low, "high"))
    high.install(size=1)
    high.running(1)
    wait_suspended(low)
    low.cluster.wait("the reason", lambda: "reempted" in status(low, monkeypatch)["why"])
    assert "Failed" not in low.conditions()
    end(high, 0, 0)
    high.condition("Complete")
    after = low.running(2)
    assert not set(uids.values()) & set(after.values())
    end(low, 0, 3)
    low.condition("Failed")


def test_an_elastic_minicluster_changes_its_size_without_a_restart(
    helm: Helm, queues: QuickCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = new_release(queued_helm(helm, queues), queues, 3)
    release.install(size=1, kueue=ELASTIC)
    uids = release.running(1)
    release.upgrade(size=2)
    uids = _kept(uids, release.running(2))
    release.upgrade(size=5)
    release.cluster.wait("the pods", lambda: len(release.live_pods()) == 5)
    release.cluster.wait("the gates", lambda: _gated(release) == {2, 3, 4})
    kept = release.live_pods()
    assert {index: kept[index]["metadata"]["uid"] for index in uids} == uids
    assert {"ranks": "2-4", "reason": "Pending: waits for Kueue"} in status(release, monkeypatch)["pods"]
    no_quota = "Pending: waits for Kueue: couldn't assign flavors to pod set main: insufficient unused quota for cpu "
    release.cluster.wait("the reason", lambda: why(release, monkeypatch, 2).startswith(no_quota))
    release.upgrade(size=3)
    uids = _kept(uids, release.running(3))
    other = beside(release)
    other.install(size=1)
    wait_suspended(other)
    release.upgrade(size=2)
    release.running(2)
    other.running(1)


def test_an_elastic_minicluster_that_grew_starts_again_after_a_suspension(
    helm4: Helm, queues: QuickCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = new_release(queued_helm(helm4, queues), queues, 2)
    release.install(size=1, kueue=ELASTIC)
    release.running(1)
    release.upgrade(size=2)
    release.running(2)
    _activate(release, active=False)
    wait_suspended(release)
    _activate(release, active=True)
    if kueue_beside.version() < (0, 19):
        # kueue#12993; docs/how-to/use-kueue.md has the way out
        conflict = "it could not start the Job: invalid admission check PodSetUpdate: conflict for annotations: "
        release.cluster.wait("the reason", lambda: conflict in status(release, monkeypatch)["why"])
        names = {"kueue.x-k8s.io/workload": None, "kueue.x-k8s.io/workload-slice-name": None}
        patch = {"spec": {"template": {"metadata": {"annotations": names}}}}
        release.kubectl("patch", "job", "mc", "--type=merge", "-p", json.dumps(patch))
    release.running(2)


def test_autoscaling_in_a_kueue_queue_requires_an_elastic_job(helm4: Helm, queues: QuickCluster) -> None:
    release = new_release(queued_helm(helm4, queues), queues, 3)
    text = release.refuse(command="install", size=1, autoscaling={"enabled": True})
    assert lines_with(text, f"autoscaling is on and the Job is in Kueue's queue {LOCAL_QUEUE}, which restarts all pods")
    release.install(size=1, autoscaling={"enabled": True}, kueue=ELASTIC)
    uids = release.running(1)
    # as the agent does
    release.kubectl("patch", "job", "mc", "-p", json.dumps({"spec": {"completions": 3, "parallelism": 3}}))
    _kept(uids, release.running(3))


@pytest.mark.parametrize("quota", [1, 3])
def test_the_autoscaler_shrinks_to_the_quota_of_kueue(
    helm4: Helm, queues: QuickCluster, tmp_path: Path, quota: int
) -> None:
    release = new_release(queued_helm(helm4, queues), queues, quota)
    release.install(size=1, autoscaling={"enabled": True}, kueue=ELASTIC)
    uids = release.running(1)
    pod, limits, now = agent(release, tmp_path), Quota(), 0.0
    resize(pod, 6)
    while (size := pod.get_job()["spec"]["completions"]) > quota:
        wait_gated(release, pod, size - len(uids))
        limits.granted(now, size, gated(pod))
        now += ADMISSION_SECONDS
        admitted = limits.granted(now, size, gated(pod))
        assert admitted < size
        resize(pod, admitted)
        if admitted <= quota:
            uids = _kept(uids, release.running(admitted))
            # the queue still needs six
            resize(pod, int(min(6, limits.limit)))
    uids = _kept(uids, release.running(quota))
    assert (gated(pod), limits.limit) == (0, quota)


def wait_gated(release: Release, pod: Kube, count: int) -> None:
    """Wait until all pods of a size exist, and Kueue keeps ``count`` of them gated."""
    size = pod.get_job()["spec"]["completions"]
    release.cluster.wait("the pods", lambda: len(release.live_pods()) == size)
    release.cluster.wait("the gates", lambda: gated(pod) == count)


def _kept(before: dict[int, str], after: dict[int, str]) -> dict[int, str]:
    """Return the pods of a size; those of a smaller size must be among them."""
    assert {index: after[index] for index in before} == before
    return after


def _gated(release: Release) -> set[int]:
    return {index for index, pod in release.live_pods().items() if pod["spec"].get("schedulingGates")}


def _activate(release: Release, *, active: bool) -> None:
    patch = json.dumps({"spec": {"active": active}})
    for workload in release.items(WORKLOADS):
        if "Finished" not in true_conditions(workload):
            release.kubectl("patch", "workload", workload["metadata"]["name"], "--type=merge", "-p", patch)
