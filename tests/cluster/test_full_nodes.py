"""Hooks of Helm beside a MiniCluster that fills its Kubernetes nodes, and in namespaces with a quota alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hook_pods import playing
from test_replacing_upgrades import GONE, QUORUM, VALUES

from tools.embedded import simulated_node
from tools.releases import Release

SIZE = {"cpu": "4", "memory": "8Gi", "pods": "110"}


@pytest.fixture
def full_node(release4: Release) -> Iterator[dict[str, Any]]:
    """Values of pods that fill a Kubernetes node of their own, one each."""
    mark = {"filled": release4.namespace}
    taint = {"key": "filled", "effect": "NoSchedule"}
    node = simulated_node(f"{release4.namespace}-full", SIZE, mark, "10.2.0.1")
    release4.cluster.create({**node, "spec": {"taints": [taint]}})
    whole = {"requests": {"cpu": "4", "memory": "8Gi"}, "limits": {"cpu": "4", "memory": "8Gi"}}
    pod = {"nodeSelector": mark, "tolerations": [{"key": "filled", "operator": "Exists"}]}
    yield {"pod": pod, "containers": [{**VALUES["containers"][0], "resources": whole}]}
    release4.cluster.kubectl("delete", "node", f"{release4.namespace}-full", "--wait=false")


@pytest.mark.xdist_group("nodes")
@pytest.mark.without("limits", why="a LimitRange with a minimum asks for some")
def test_hooks_run_beside_a_minicluster_that_fills_its_nodes(
    release4: Release, full_node: dict[str, Any], tmp_path: Path
) -> None:
    release4.install(**{**VALUES, "size": 1, **full_node})
    release4.running(1)
    with playing(release4, tmp_path) as hooks:
        release4.upgrade(maxSize=4)
        assert hooks.said == [GONE, QUORUM]


def test_the_accounts_of_the_chart_have_the_pull_secrets_of_that_of_the_namespace(release4: Release) -> None:
    """Kubernetes gives them to pods that name none."""
    pull = [{"name": "team"}]
    account = f'{{"imagePullSecrets": [{{"name": "{pull[0]["name"]}"}}]}}'
    release4.kubectl("patch", "serviceaccount", "default", f"--patch={account}")
    release4.install(size=1, maxSize=2, autoscaling={"enabled": True})
    release4.running(1)
    assert release4.get("serviceaccount", "mc-agent")["imagePullSecrets"] == pull
    [pod] = release4.live_pods().values()
    assert (pod["spec"]["serviceAccountName"], pod["spec"]["imagePullSecrets"]) == ("mc-agent", pull)
    # an upgrade leaves the pod alone, although the account changes
    release4.kubectl("patch", "serviceaccount", "default", '--patch={"imagePullSecrets": []}', "--type=merge")
    release4.upgrade(maxSize=2)
    assert "imagePullSecrets" not in release4.get("serviceaccount", "mc-agent")
    assert release4.live_pods()[0]["metadata"]["uid"] == pod["metadata"]["uid"]
