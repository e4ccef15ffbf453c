"""The commands and the SDK with nodes of a group, on a real Kubernetes."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from minicluster.sdk import MiniCluster
from pod_jobs import UNTIL_TOLD
from real_cluster import IN_PODS, Install
from test_pods_groups import VALUES

from tools import testbed
from tools.clients import Done, until
from tools.releases import STEP_SECONDS, FluxRelease

pytestmark = [
    IN_PODS,
    pytest.mark.parametrize("scheduler", ["Fluxion"], indirect=True),
]
#: Writes to the log of the pod
NOTE = "echo 'a note' >/proc/1/fd/1"


def command(cluster: FluxRelease) -> Callable[..., Done]:
    """Return what runs `minicluster` in the namespace of a cluster."""
    return lambda *words, stdin=None: cluster.cluster.run(
        "minicluster", words[0], "-n", cluster.namespace, *words[1:], stdin=stdin
    )


def test_shell_copy_and_logs_take_the_node_that_is_asked_for(release: Install, tmp_path: Path) -> None:
    cluster = release({**VALUES, "interactive": False}, {"cores": 1, "command": UNTIL_TOLD})
    name, minicluster = cluster.name, command(cluster)
    cluster.wait_for("0,2")
    for node in ("gpu-0", f"{name}-gpu-0", "2"):
        shell = minicluster("shell", name, "--node", node, stdin="hostname; flux getattr rank; exit 4")
        assert shell == Done(4, f"{name}-gpu-0\n2\n", "")
    assert minicluster("shell", name, "--node", "1").err == (
        f"minicluster: {name}-1 has no pod, because the size is 1: "
        f"`minicluster scale {name} 2 -n {cluster.namespace}`\n"
    )

    (tmp_path / "mine").write_text("mine\n")
    assert minicluster("copy", "--node", "gpu-0", str(tmp_path / "mine"), f"{name}:/tmp").code == 0
    assert minicluster("copy", "--node", "gpu-0", f"{name}:/tmp/mine", str(tmp_path / "back")).code == 0
    assert (tmp_path / "back").read_text() == "mine\n"
    assert minicluster("copy", f"{name}:/tmp/mine", str(tmp_path / "no")).code == 1
    # and to all nodes, of all groups
    assert minicluster("copy", "--all", str(tmp_path / "mine"), f"{name}:/tmp/all").code == 0
    assert minicluster("shell", name, "--node", "gpu-0", stdin="cat /tmp/all") == Done(0, "mine\n", "")

    words = ["minicluster", "logs", "-n", cluster.namespace, name, "--node", "gpu-0", "-f"]
    with subprocess.Popen(words, env=cluster.cluster.env, text=True, stdout=subprocess.PIPE, stderr=-1) as logs:
        assert minicluster("shell", name, "--node", "gpu-0", stdin=NOTE).code == 0
        until(lambda: "a note\n" in minicluster("logs", name, "--node", "gpu-0").out, STEP_SECONDS)
        cluster.exec(0, "touch", "/tmp/end")
        out, err = logs.communicate(timeout=STEP_SECONDS)
    assert "a note\n" in out
    assert (logs.returncode, err) == (0, f"minicluster: {name}-gpu-0 has ended: Complete\n")


def test_the_sdk_scales_a_group_and_reads_the_log_of_its_node(
    release: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in testbed.kubernetes().env.items():
        monkeypatch.setenv(name, value)
    release_of = release(VALUES, {"cores": 1})
    with MiniCluster.connect(release_of.name, release_of.namespace) as cluster:
        cluster.scale(2, group="spot", wait=True, timeout=STEP_SECONDS)
        assert release_of.up() == "0,2,4-5"
        assert [(each["name"], each["nodes"]["up"]) for each in cluster.status()["groups"]] == [("gpu", 1), ("spot", 2)]
        minicluster = command(release_of)
        assert minicluster("shell", release_of.name, "--node", "spot-1", stdin=NOTE).code == 0
        until(lambda: "a note" in list(cluster.logs(node="spot-1")), STEP_SECONDS)
        cluster.scale(0, group="spot", wait=True, timeout=STEP_SECONDS)
        assert release_of.up() == "0,2"
