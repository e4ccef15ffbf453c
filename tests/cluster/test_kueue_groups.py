"""Groups in a queue of Kueue's real controller: each Job has a Workload of its own."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from autoscaled import again, agent, gated, resize
from minicluster.kube.kubectl import Kubernetes
from minicluster.status.listing import find_all
from queued import ELASTIC, beside, new_release, queued_helm, status, with_priority
from quick import QuickCluster
from simulated import end
from support import Helm, lines_with
from test_node_groups import hosts, wait_for

from tools.kueue_beside import LOCAL_QUEUE
from tools.releases import Release

pytestmark = [
    pytest.mark.xdist_group("nodes"),
    pytest.mark.any_helm,
]
ON = {"enabled": True}


def gpu(size: int) -> list[dict[str, Any]]:
    return [{"name": "gpu", "size": size, "maxSize": 3, "cores": 1}]


def waits(release: Release, size: int) -> None:
    """Wait until Kueue holds the pods of the group back, and these are its pods."""
    release.cluster.wait("the suspension", lambda: counts(release) == (size, True))


def counts(release: Release) -> tuple[int, bool]:
    spec = release.get("job", "mc-gpu")["spec"]
    return min(spec["completions"], spec["parallelism"]), spec["suspend"]


def test_each_group_is_a_workload_and_status_says_which_one_waits(
    helm4: Helm, queues: QuickCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = new_release(queued_helm(helm4, queues), queues, 2)
    release.install(size=1, maxSize=2, groups=gpu(2))
    labels = {job["metadata"]["name"]: job["metadata"]["labels"] for job in release.items("jobs")}
    assert {name: found["kueue.x-k8s.io/queue-name"] for name, found in labels.items()} == {
        "mc": LOCAL_QUEUE,
        "mc-gpu": LOCAL_QUEUE,
    }
    why = f"Kueue's queue {LOCAL_QUEUE}: couldn't assign flavors to pod set main: insufficient unused quota for cpu in "
    release.cluster.wait("an admission", lambda: len(hosts(release)) > 0)
    release.cluster.wait("the reason", lambda: "insufficient" in str(status(release, monkeypatch)))
    found, admitted = status(release, monkeypatch), hosts(release)
    # Kueue chooses which one it admits first
    if admitted == ["mc-0"]:
        assert [each["ranks"] for each in found["pods"]] == ["0", "2-3"]
        assert found["pods"][1]["reason"].startswith(why)
    else:
        assert (found["state"], found["pods"]) == ("Suspended", [{"ranks": "2-3", "reason": "Running"}])
        assert found["why"].startswith(why)
    row = find_all(Kubernetes(namespace=release.namespace), everywhere=False, now=datetime.now(UTC))[0]
    # a group that waits has its size
    assert row["size"] == 3
    release.kubectl("patch", "clusterqueue", release.namespace, "--type=json", "-p", json.dumps(MORE))
    wait_for(release, "mc-0", "mc-gpu-0", "mc-gpu-1")


#: Room for a third pod
MORE = [{"op": "replace", "path": "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota", "value": 3}]


def test_a_group_in_a_queue_goes_to_zero_and_back_and_keeps_another_size(helm: Helm, queues: QuickCluster) -> None:
    release = new_release(queued_helm(helm, queues), queues, 4)
    release.install(size=1, maxSize=2, groups=gpu(0))
    wait_for(release, "mc-0")
    lead = release.running(1)
    for size, names in ((2, ["mc-gpu-0", "mc-gpu-1"]), (0, []), (1, ["mc-gpu-0"]), (0, [])):
        release.upgrade(groups=gpu(size))
        wait_for(release, "mc-0", *names)
    assert release.running(1) == lead
    release.upgrade(groups=gpu(2))
    wait_for(release, "mc-0", "mc-gpu-0", "mc-gpu-1")
    assert lines_with(
        release.refuse(groups=gpu(3)),
        "size can't change from 2 to 3 while the MiniCluster mc-gpu runs: Kueue would restart all pods, because it "
        "was installed without kueue.elastic; uninstall mc first, or install under another name",
    )
    assert hosts(release) == ["mc-0", "mc-gpu-0", "mc-gpu-1"]


def test_a_group_of_an_elastic_cluster_takes_any_size_in_place(helm: Helm, queues: QuickCluster) -> None:
    release = new_release(queued_helm(helm, queues), queues, 3)
    release.install(size=1, maxSize=2, groups=gpu(1), kueue=ELASTIC)
    wait_for(release, "mc-0", "mc-gpu-0")
    kept = {pod["metadata"]["uid"] for pod in release.items("pods")}
    release.upgrade(groups=gpu(2))
    wait_for(release, "mc-0", "mc-gpu-0", "mc-gpu-1")
    assert kept < {pod["metadata"]["uid"] for pod in release.items("pods")}
    release.upgrade(groups=gpu(0), size=2)
    wait_for(release, "mc-0", "mc-1")
    release.upgrade(groups=gpu(1))
    wait_for(release, "mc-0", "mc-1", "mc-gpu-0")


def test_the_agent_scales_a_group_in_a_queue_from_zero_and_back(
    helm4: Helm, queues: QuickCluster, tmp_path: Path
) -> None:
    release = new_release(queued_helm(helm4, queues), queues, 2)
    release.install(size=1, maxSize=2, groups=gpu(0), kueue=ELASTIC, autoscaling=ON)
    wait_for(release, "mc-0")
    # until then Kueue suspends it, and a suspended Job has no gated pods
    release.cluster.wait("the admission of the empty group", lambda: counts(release) == (0, False))
    pod = agent(release, tmp_path).of_group("gpu")
    resize(pod, 3)
    release.cluster.wait("the gates", lambda: gated(pod) == 3)
    for size in (1, 0, 1):
        again(lambda size=size: pod.resize(pod.get_job(), size) if size else pod.empty(pod.get_job(), 3))  # type: ignore[misc]
        wait_for(release, "mc-0", *["mc-gpu-0"][:size])
    again(lambda: pod.empty(pod.get_job(), 3))
    wait_for(release, "mc-0")
    release.upgrade(deadlineSeconds=9000)
    assert counts(release) == (0, False)


def test_the_agent_lowers_the_size_of_a_group_that_kueue_never_admitted(
    helm4: Helm, queues: QuickCluster, tmp_path: Path
) -> None:
    release = new_release(queued_helm(helm4, queues), queues, 2)
    release.install(size=1, maxSize=2, groups=gpu(3), kueue=ELASTIC, autoscaling=ON)
    wait_for(release, "mc-0")
    waits(release, 3)
    pod = agent(release, tmp_path).of_group("gpu")
    resize(pod, 2)
    waits(release, 2)
    again(lambda: pod.empty(pod.get_job(), 3))
    release.cluster.wait("no pods", lambda: counts(release) == (0, False))
    resize(pod, 1)
    wait_for(release, "mc-0", "mc-gpu-0")


def test_kueue_preempts_one_job_of_a_cluster_and_starts_it_again(
    helm4: Helm, queues: QuickCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    low = new_release(queued_helm(helm4, queues), queues, 3)
    low.install(size=1, maxSize=2, groups=gpu(2), **with_priority(low, "low"))
    wait_for(low, "mc-0", "mc-gpu-0", "mc-gpu-1")
    high = beside(low, "high", **with_priority(low, "high"))
    high.install(size=1)
    high.running(1)
    low.cluster.wait("the suspension", lambda: [name for name in hosts(low) if name.startswith("mc-")] in LEFT)
    low.cluster.wait("the reason", lambda: "reempted" in str(status(low, monkeypatch)))
    assert "Failed" not in low.conditions()
    end(high, 0, 0)
    high.condition("Complete")
    wait_for(low, "mc-0", "mc-gpu-0", "mc-gpu-1")


#: Without the cluster's own pod, or without the group
LEFT = (["mc-gpu-0", "mc-gpu-1"], ["mc-0"])
