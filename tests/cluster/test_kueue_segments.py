"""Segments that Kueue's real controller places: 4 racks of 8 simulated nodes, each with room for one pod."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
from queued import beside, new_release, queued_helm, status
from quick import QuickCluster
from simulated import end
from support import Helm

from tools.embedded import simulated_node
from tools.kueue_beside import LOCAL_QUEUE, QUEUEING
from tools.releases import Release

pytestmark = [
    pytest.mark.xdist_group("nodes"),
    pytest.mark.any_helm,
]
RACK, POOL = "example.com/rack", "example.com/pool"
LEVELS = [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]
#: Keeps the pods of other tests away
TAINT = {"key": POOL, "value": "racks", "effect": "NoSchedule"}
FLAVOR = {
    "nodeLabels": {POOL: "racks"},
    "topologyName": "racks",
    "tolerations": [{"key": POOL, "operator": "Equal", "value": "racks", "effect": "NoSchedule"}],
}
#: Without Kueue: the pods of a group share a rack
TOGETHER = {"topologyKey": RACK, "labelSelector": {"matchLabels": {"minicluster/group": "a"}}}
SEGMENTS = {"maxSize": 27, "pod": {"segments": {"size": 3, "topologyKey": RACK}}}


@pytest.fixture(scope="module")
def racks(queues: QuickCluster) -> Iterator[QuickCluster]:
    """Return the cluster with the racks."""
    nodes = [_node(f"rack-{rack}-{number}", f"r{rack}") for rack in range(4) for number in range(8)]
    queues.create(
        {"apiVersion": QUEUEING, "kind": "Topology", "metadata": {"name": "racks"}, "spec": {"levels": LEVELS}}, *nodes
    )
    yield queues
    queues.kubectl("delete", "nodes", f"--selector={POOL}=racks", "--wait=false")


def _node(name: str, rack: str) -> dict[str, Any]:
    size = {"cpu": "1", "memory": "8Gi", "pods": "9"}
    node = simulated_node(name, size, {POOL: "racks", RACK: rack}, "10.1.0.1")
    return {**node, "spec": {"taints": [TAINT]}}


def racks_of(cluster: QuickCluster, pods: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the rack of each pod."""
    nodes = cluster.get("nodes", f"--selector={POOL}=racks")["items"]
    rack = {node["metadata"]["name"]: node["metadata"]["labels"][RACK] for node in nodes}
    return [rack[pod["spec"]["nodeName"]] for pod in pods]


def segments(cluster: QuickCluster, release: Release) -> list[set[str]]:
    """Return the racks of each segment."""
    found = racks_of(cluster, (pod for _, pod in sorted(release.live_pods().items())))
    return [set(found[first : first + 3]) for first in range(0, len(found), 3)]


def test_kueue_gives_each_segment_one_rack(helm4: Helm, racks: QuickCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    release = new_release(queued_helm(helm4, racks), racks, 32, FLAVOR)
    release.install(size=24, **SEGMENTS)
    uids = release.running(24, seconds=120)
    found = segments(racks, release)
    assert sorted(found, key=str) == [{rack} for rack in ("r0", "r1", "r2", "r3") for _ in range(2)]
    end(release, 5, 85)
    release.cluster.wait("another pod", lambda: release.running(24, seconds=120)[5] != uids[5])
    assert segments(racks, release) == found
    # two nodes are left in each rack
    other = beside(release)
    other.install(size=3, **SEGMENTS)
    no_rack = "couldn't assign flavors to pod set main: topology \"racks\" doesn't allow to fit any of 1 slice(s)"
    full = f"Kueue's queue {LOCAL_QUEUE}: {no_rack}"
    other.cluster.wait("the reason", lambda: status(other, monkeypatch)["why"].startswith(full))
    end(release, 0, 0)
    other.running(3, seconds=120)
    assert [len(each) for each in segments(racks, other)] == [1]


def test_an_affinity_gives_a_group_one_rack_without_kueue(release4: Release, racks: QuickCluster) -> None:
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TOGETHER]}}
    place = {"nodeSelector": {POOL: "racks"}, "tolerations": FLAVOR["tolerations"]}
    group = {"name": "a", "size": 4, "cores": 1, "pod": {**place, "template": {"spec": {"affinity": affinity}}}}
    runner = {"command": "sleep inf", "resources": {"requests": {"cpu": 1}, "limits": {"cpu": 1}}}
    release4.install(size=1, groups=[group], containers=[runner])

    def of_group() -> list[dict[str, Any]]:
        pods = release4.items("pods", "--selector=minicluster/group=a")
        return [pod for pod in pods if pod["status"]["phase"] == "Running"]

    racks.wait("the group", lambda: len(of_group()) == 4, 120)
    assert len(set(racks_of(racks, of_group()))) == 1
    release4.uninstall()  # the racks have room for one pod a node
