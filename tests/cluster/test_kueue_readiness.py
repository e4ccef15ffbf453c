"""What Kueue does when a pod is not ready for too long, with seconds in place of its 30 minutes, and what is said."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from autoscale import Policy, Snapshot
from autoscaled import agent, resize
from minicluster.cluster.reasons import WORKLOADS
from placement import Lacking
from queued import CPU, ELASTIC, beside, new_release, queued_helm, status, true_conditions
from quick import QuickCluster
from scaled_job import ScaledJob
from simulated import end
from state import Nodes
from support import Helm

from tools import kueue_beside
from tools.embedded import simulated_node
from tools.releases import Release

pytestmark = [
    pytest.mark.xdist_group("nodes"),
    pytest.mark.any_helm,
]
POOL = "example.com/pool"
#: Room for one pod, and the agent
SIZE = {"cpu": "1500m", "memory": "8Gi", "pods": "9"}
#: Until then an eviction is told: longer than a pause between two looks on a busy machine
AGAIN = {"timestamp": "Eviction", "backoffBaseSeconds": 30, "backoffMaxSeconds": 30}
#: Kueue's limits, longer than a busy machine needs for what a test does until then
HURRIED = {"timeout": "25s", "recoveryTimeout": "15s", "requeuingStrategy": AGAIN}
NO_RECOVERY = HURRIED | {"recoveryTimeout": "0s"}


@pytest.fixture(scope="module")
def limited(request: pytest.FixtureRequest, cluster: QuickCluster) -> Iterator[QuickCluster]:
    """Return the cluster with a Kueue that has these limits."""
    if why := kueue_beside.missing():
        pytest.skip(why)
    with kueue_beside.kueue(cluster, cluster.work_dir, waitForPodsReady=request.param):
        yield cluster
    # what other tests read of the scheduler counts all Kubernetes nodes
    cluster.kubectl("delete", "nodes", f"--selector={POOL}", "--wait=false")


def three_nodes(helm: Helm, cluster: QuickCluster) -> Release:
    """Return a release, not yet installed, on three Kubernetes nodes of its own with room for one pod each."""
    release = new_release(queued_helm(helm, cluster), cluster, 9)
    mine = {POOL: release.namespace}
    taint = {"key": POOL, "value": release.namespace, "effect": "NoSchedule"}
    for number in range(3):
        node = simulated_node(f"{release.namespace}-{number}", SIZE, mine, "10.1.0.1")
        cluster.create({**node, "spec": {"taints": [taint]}})
    release.values |= {"pod": {"nodeSelector": mine, "tolerations": [{"key": POOL, "operator": "Exists"}]}}
    return release


def close(release: Release, number: int, *, closed: bool = True) -> None:
    """Cordon a Kubernetes node, or uncordon it."""
    release.cluster.kubectl("uncordon" if not closed else "cordon", f"{release.namespace}-{number}")


def lose(release: Release, index: int) -> None:
    """Let a pod end whose Kubernetes node takes no other one."""
    node = release.live_pods()[index]["spec"]["nodeName"]
    release.cluster.kubectl("cordon", node)
    end(release, index, 85)


def open_all(release: Release) -> None:
    for number in range(3):
        close(release, number, closed=False)


def is_ready(release: Release) -> bool:
    """Say whether Kueue takes all pods of the admitted Workload for ready."""
    kinds = [true_conditions(one) for one in release.items(WORKLOADS)]
    return any({"Admitted", "PodsReady"} <= found for found in kinds if "Finished" not in found)


def problem(release: Release, monkeypatch: pytest.MonkeyPatch, minutes: float = 0) -> str:
    return " ".join(status(release, monkeypatch, minutes)["problems"] or ())


WAYS = {
    False: "by default, Kueue suspends all pods: ask its administrator to set recoveryTimeout to 0s (waitForPodsReady)",
    True: "by default, Kueue suspends all pods: `minicluster scale mc 2` gives up the others",
}


@pytest.mark.parametrize("limited", [HURRIED], indirect=True)
@pytest.mark.parametrize("is_elastic", [False, True])
def test_kueue_suspends_all_pods_because_of_one_and_status_says_so_before_and_after(
    helm4: Helm, limited: QuickCluster, monkeypatch: pytest.MonkeyPatch, is_elastic: bool
) -> None:
    release = three_nodes(helm4, limited)
    release.install(size=3, **({"kueue": ELASTIC} if is_elastic else {}))
    uids = release.running(3)
    release.cluster.wait("the readiness", lambda: is_ready(release))
    lose(release, 2)
    warning = (
        rf"not all pods have been ready for 8m\w* \(WaitForRecovery\): in 2[01]m\w*, {re.escape(WAYS[is_elastic])}"
    )
    release.cluster.wait("the warning", lambda: re.fullmatch(warning, problem(release, monkeypatch, 8.5)))
    codes = "(PodsReadyTimeout, WaitForRecovery), in its queue again at "
    release.cluster.wait("the eviction", lambda: codes in status(release, monkeypatch)["why"], 90)
    open_all(release)
    after = release.running(3, seconds=90)
    assert not set(uids.values()) & set(after.values())
    release.cluster.wait("its end", lambda: "PodsReadyTimeout" in problem(release, monkeypatch))
    # Kueue may evict it once more, for the time before
    before = r"Kueue suspended all pods, and started them again at .* UTC: PodsReadyTimeout, WaitForRecovery, \d times?"
    assert re.fullmatch(before, problem(release, monkeypatch))


def decide(job: ScaledJob, ready: set[int], requested: int, now: float) -> int:
    """Return the size that the agent wants, with brokers in Flux that have no jobs, and make it so."""
    job.job = job.kube.get_job()
    job.count(job.lacks(), ready, now)
    nodes = Nodes(dict.fromkeys(job.ranks, (1, 0)), {}, frozenset(ready), {})
    size = job.decide(Snapshot(now, job.size, nodes, requested=requested)).size
    if size != job.size:
        resize(job.kube, size)
        job.placement.give_up(now, size)  # as `ScaledJob.resize` does
    return size


@pytest.mark.parametrize("limited", [HURRIED], indirect=True)
def test_an_agent_that_gives_up_a_pod_without_a_place_keeps_the_others(
    helm4: Helm, limited: QuickCluster, tmp_path: Path
) -> None:
    release = three_nodes(helm4, limited)
    release.install(size=3, kueue=ELASTIC, autoscaling={"enabled": True})
    uids = release.running(3)
    release.cluster.wait("the readiness", lambda: is_ready(release))
    job = ScaledJob("", range(8), 0, agent(release, tmp_path), Policy(1, 8, 0, 60, give_up=2))
    assert decide(job, {0, 1, 2}, 3, 0) == 3
    lose(release, 1)
    release.cluster.wait("the loss", lambda: job.lacks() == Lacking(0, {1}))
    assert decide(job, {0, 2}, 3, 10) == 3
    # the highest pod makes way for the one that was lost
    assert decide(job, {0, 2}, 3, 12) == 2
    release.cluster.wait("the readiness", lambda: is_ready(release))
    now = release.running(2)
    assert (now[0], now[1] in uids.values()) == (uids[0], False)
    open_all(release)
    assert decide(job, {0, 1}, 3, 300) == 2
    assert decide(job, {0, 1}, 3, 400) == 3
    assert {**release.running(3), 2: ""} == {**now, 2: ""}
    release.cluster.wait("the readiness", lambda: is_ready(release))


@pytest.mark.parametrize("limited", [NO_RECOVERY], indirect=True)
def test_without_a_recovery_timeout_a_lost_pod_costs_only_itself_but_a_start_is_not_awaited_longer(
    helm4: Helm, limited: QuickCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = three_nodes(helm4, limited)
    release.install(size=2)
    uids = release.running(2)
    release.cluster.wait("the readiness", lambda: is_ready(release))
    lose(release, 1)
    release.cluster.wait("the loss", lambda: not is_ready(release))
    close(release, 2)
    # admitted after the loss, and evicted because its second pod never was
    other = beside(release, size=2, containers=[CPU], pod=release.values["pod"], minSize=1)
    other.install()
    codes = "(PodsReadyTimeout, WaitForStart), in its queue again at "
    other.cluster.wait("the eviction", lambda: codes in status(other, monkeypatch)["why"], 90)
    assert status(release, monkeypatch)["state"] != "Suspended"
    assert release.live_pods()[0]["metadata"]["uid"] == uids[0]
