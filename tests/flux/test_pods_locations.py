"""Jobs choose the zones and the Kubernetes nodes of pods, on a real Kubernetes."""

import json
from collections.abc import Iterator

import pytest
from pod_jobs import QUIET, submit
from real_cluster import IN_PODS, Install

from tools import testbed
from tools.releases import FluxRelease, index_of

# one at a time: they label the Kubernetes nodes
pytestmark = [IN_PODS, pytest.mark.xdist_group("zones")]

ZONE = "topology.kubernetes.io/zone"


@pytest.fixture
def zones() -> Iterator[dict[str, str]]:
    """The zone of each Kubernetes node, which has it for the test only."""
    if testbed.minor_version() < 35:
        pytest.skip("the cluster's Kubernetes gives pods no zone, which came with 1.35")
    cluster = testbed.kubernetes()
    names = cluster.output("kubectl", "get", "nodes", "-o", "name").split()
    found = {name.removeprefix("node/"): f"test-1{letter}" for name, letter in zip(names, "abcdefgh", strict=False)}
    for name, zone in found.items():
        cluster.kubectl("label", "node", name, f"{ZONE}={zone}")
    yield found
    for name in found:
        cluster.kubectl("label", "node", name, f"{ZONE}-")


def hosts(cluster: FluxRelease, *words: str) -> list[str]:
    """Return where a job's tasks run, without the cluster's name."""
    return sorted(line.removeprefix(f"{cluster.name}-") for line in cluster.flux(0, "run", *words, "hostname").split())


def test_a_job_runs_in_the_zone_and_on_the_kubernetes_node_that_it_wants(
    release: Install, zones: dict[str, str]
) -> None:
    cluster = release({"size": 4, "interactive": True, "flux": {"locations": True}, **QUIET}, {"cores": 1})
    cluster.wait_for("0-3")
    nodes: dict[str, list[int]] = {}
    for pod in sorted(cluster.pods(), key=index_of):
        nodes.setdefault(pod["spec"]["nodeName"], []).append(index_of(pod))
    for node, indices in nodes.items():
        for wish in (f"node={node}", f"zone={zones[node]}"):
            assert hosts(cluster, f"--requires={wish}", f"-N{len(indices)}") == [str(index) for index in indices]
    done = cluster.run_in(cluster.pod(0), "/mnt/flux/bin/flux", "run", "--requires=zone=test-2a", "true")
    known = ", ".join(f"{zones[node]} ({len(nodes[node])})" for node in sorted(nodes, key=lambda node: zones[node]))
    assert f"zone=test-2a: no node is there now: give one of {known}\n" in done.both
    status = json.loads(
        cluster.cluster.output("minicluster", "status", cluster.name, "-n", cluster.namespace, "-ojson")
    )
    shown = {(one["node"], one["zone"]) for one in status["locations"]}
    assert shown == {(node, zones[node]) for node in nodes}


@pytest.mark.parametrize("locations", [False, True])
def test_a_group_of_a_zone_runs_the_jobs_of_the_zone(release: Install, zones: dict[str, str], locations: bool) -> None:
    """With flux.locations, other nodes that are in the zone run them too."""
    zone = next(iter(zones.values()))
    groups = [
        {
            "name": name,
            "size": size,
            "maxSize": 1,
            "cores": 1,
            "properties": [f"zone={each}"],
            "pod": {"nodeSelector": {ZONE: each}},
        }
        for name, size, each in (("a", 1, zone), ("z", 0, "test-1z"))
    ]
    values = {"size": 1, "groups": groups, "interactive": True, "flux": {"locations": locations}}
    cluster = release({**values, **QUIET}, {"cores": 1})
    cluster.wait_for("0-1")
    pods = {pod["spec"]["hostname"].removeprefix(f"{cluster.name}-"): pod for pod in cluster.items("pods")}
    place = {host: zones[pod["spec"]["nodeName"]] for host, pod in pods.items()}
    assert place["a-0"] == zone
    wanted = sorted(host for host in place if host == "a-0" or (locations and place[host] == zone))
    assert hosts(cluster, f"--requires=zone={zone}", f"-N{len(wanted)}") == wanted
    # a zone whose nodes may still come is known: the job waits
    waits = submit(cluster, "--requires=zone=test-1z", "true")
    assert cluster.flux(0, "jobs", "-n", "-o", "{state}", waits).strip() in ("DEPEND", "PRIORITY", "SCHED")
