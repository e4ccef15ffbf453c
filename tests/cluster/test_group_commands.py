"""The commands and the SDK with nodes of groups, on a real API server. In the pods nothing runs."""

import pytest
from minicluster.sdk import ArgumentError, MiniCluster, ReleaseError
from quick import take_environment
from support import Helm
from test_node_groups import VALUES, wait_for

from tools import tenant
from tools.clients import Done, run
from tools.releases import Release


@pytest.mark.any_helm
def test_the_commands_take_the_pod_of_the_group_that_is_asked_for(connected: Helm, release: Release) -> None:
    """What Kubernetes refuses names the pod."""
    environment = connected.environment | {"HELM_BIN": connected.name}

    def minicluster(command: str, *words: str) -> Done:
        return run("minicluster", command, "-n", release.namespace, "mc", *words, env=environment)

    release.install(**VALUES)
    wait_for(release, "mc-0", "mc-gpu-0", "mc-gpu-1")
    for node in ("gpu-1", "mc-gpu-1", "3"):
        assert "pods/log mc-gpu-1-" in minicluster("logs", "--node", node).err
    way = f"`minicluster scale mc spot=2 -n {release.namespace}`"
    size = f"mc-spot-1 has no pod, because the size is 0: {way}"
    assert minicluster("shell", "--node", "spot-1") == Done(1, "", f"minicluster: {size}\n")
    assert minicluster("logs", "--node", "spot-1") == Done(1, "", f"minicluster: there is no log: {size}\n")
    assert minicluster("scale", "spot=2").code == 0
    wait_for(release, "mc-0", "mc-gpu-0", "mc-gpu-1", "mc-spot-0", "mc-spot-1")
    assert "pods/log mc-spot-1-" in minicluster("logs", "--node", "spot-1").err
    there = "there are 0 to 1, gpu-0 to gpu-2, spot-0 to spot-1"
    for node in ("gpu", "gpu-3", "cpu-0", "7"):
        assert minicluster("logs", "--node", node) == Done(1, "", f"minicluster: mc has no node {node}: {there}\n")
    # no group is a MiniCluster of its own
    assert (
        "there is no MiniCluster mc-gpu"
        in run("minicluster", "logs", "-n", release.namespace, "mc-gpu", env=environment).err
    )
    words = ("kubectl_complete-minicluster", "logs", "-n", release.namespace)
    assert run(*words, "", env=environment).out == "mc\n:4\n"
    assert run(*words, "mc", "--node", "gpu", env=environment).out == "gpu-0\ngpu-1\n:4\n"


def test_the_sdk_scales_a_group_and_shows_its_pods(
    connected: Helm, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_environment(monkeypatch, connected)
    values = tenant.values(VALUES, release.world)
    with MiniCluster.create(release.name, release.namespace, values) as cluster:
        wait_for(release, "mc-0", "mc-gpu-0", "mc-gpu-1")
        cluster.scale(1, group="spot")
        cluster.scale(0, group="gpu")
        cluster.scale(2)
        wait_for(release, "mc-0", "mc-1", "mc-spot-0")
        cluster.scale(3, group="gpu")
        wait_for(release, "mc-0", "mc-1", "mc-gpu-0", "mc-gpu-1", "mc-gpu-2", "mc-spot-0")
        assert cluster.status()["pods"] == [{"ranks": "0-5", "reason": "Running"}]
        with pytest.raises(ReleaseError, match="the size 4 is above the maxSize of the group gpu, 3: lower it"):
            cluster.scale(4, group="gpu")
        with pytest.raises(ArgumentError, match=r"^mc has no group cpu: there are gpu, spot$"):
            cluster.scale(1, group="cpu")
        with pytest.raises(ArgumentError, match=r"^mc has no node cpu-0: there are 0 to 1, gpu-0 to "):
            list(cluster.logs(node="cpu-0"))
