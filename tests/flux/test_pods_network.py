"""Ports, host networks and quotas on a real Kubernetes."""

import json
from functools import partial
from typing import Any

import pytest
from real_cluster import IN_PODS, Install
from support import Helm

from tools import testbed
from tools.clients import until
from tools.releases import STEP_SECONDS, FluxRelease
from tools.testbed import NAME

pytestmark = IN_PODS

QUIET = {"logging": {"quiet": True}}
ONE_CORE = {"cores": 1}


def waits_for_a_port(cluster: FluxRelease) -> bool:
    """Say whether the last pod waits for a node with a free port."""
    conditions = cluster.pods()[-1]["status"].get("conditions", [])
    return any("free ports" in c.get("message", "") for c in conditions if c["type"] == "PodScheduled")


def on_one_node() -> dict[str, Any]:
    """Return fields of `pod` that place all pods on the last node."""
    node = testbed.kubernetes().get("nodes")["items"][-1]["metadata"]["name"]
    return {"nodeSelector": {"kubernetes.io/hostname": node}, "tolerations": testbed.tolerations(node)}


@pytest.mark.without("security", why="Pod Security refuses hostNetwork")
def test_brokers_in_the_host_network_never_share_a_node(release: Install) -> None:
    """Only hostNetwork is set: interface and DNS follow from it."""
    here = {"hostNetwork": True, **on_one_node()}
    first = release({"size": 1, "maxSize": 2, **QUIET, "pod": here}, ONE_CORE)
    first.wait_for("0")
    first.upgrade("--set", "size=2")
    until(lambda: len(first.pods()) == 2 and waits_for_a_port(first), STEP_SECONDS)
    first.upgrade("--set", "size=1")
    second = release({"size": 1, **QUIET, "pod": here}, {**ONE_CORE, "command": "echo here"})
    until(lambda: bool(second.pods()) and waits_for_a_port(second), STEP_SECONDS)
    first.flux(0, "shutdown")
    assert second.wait_for_end().keys() >= {"Complete"}
    assert second.log(0) == "here\n"


def test_a_sidecar_port_is_reachable_while_another_container_crashes(release: Install) -> None:
    serve = 'cd /tmp && echo "of $JOB_COMPLETION_INDEX" >index.html && exec python3 -m http.server 8000'
    web = {"name": "web", "command": serve, "ports": [8000]}
    values: dict[str, Any] = {"size": 2, **QUIET, "containers": [web, {"name": "bad", "command": "exit 3"}]}
    cluster = release(values, {**ONE_CORE, "runFlux": True})
    cluster.wait_for("0-1")
    ask = f"import urllib.request as u; print(u.urlopen('http://{NAME}-web:8000', timeout=2).read().decode(), end='')"
    answer = partial(cluster.exec, 0, "python3", "-c", ask)
    until(lambda: restarts(cluster, "bad") >= 2, STEP_SECONDS)
    seen = {until(answer, STEP_SECONDS) for _ in range(20)}
    assert seen == {"of 0\n", "of 1\n"}


def restarts(cluster: FluxRelease, container: str) -> int:
    """Return the restarts of a sidecar, in the pod that has the fewest."""
    statuses = [s for pod in cluster.pods() for s in pod["status"].get("initContainerStatuses", [])]
    return min((s["restartCount"] for s in statuses if s["name"] == container), default=0)


QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "quota"},
    "spec": {"hard": {"requests.cpu": "1", "limits.cpu": "2", "requests.memory": "1Gi", "limits.memory": "1Gi"}},
}


def test_helm_test_runs_under_a_quota_and_leaves_nothing(release: Install, helm: Helm) -> None:
    resources = {"cpu": "100m", "memory": "256Mi"}
    runner = {**ONE_CORE, "resources": {"requests": resources, "limits": resources}}
    cluster = release(QUIET, runner, helm=helm.name)
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(QUOTA))
    cluster.wait_for("0")
    assert "Succeeded" in cluster.ok("test")
    cluster.flux(0, "shutdown")
    cluster.wait_for_end()
    assert "no quorum within 60 s" in cluster.helm.fails("test", NAME, "-n", cluster.namespace)
    assert [p["metadata"]["name"] for p in cluster.items("pods")] == [cluster.pods()[0]["metadata"]["name"]]
