"""Autoscaling: the size after upgrades and rollbacks, and the values that may change."""

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import kube
import pytest
import state
from autoscaled import ON, SCALES, agent, resize, size
from support import ROOT, lines_with

from tools.clients import ProcessError
from tools.releases import Release

#: Kubernetes' refusal of a manifest that was rendered for another size
REFUSED = "can only be modified in tandem with"
WAY = "uninstall mc first, or install under another name"
LOSS = "uninstall mc first, which loses its queue, or install under another name"


def test_an_upgrade_keeps_the_live_size_until_autoscaling_is_off(release: Release, tmp_path: Path) -> None:
    release.install(**SCALES)
    pod = agent(release, tmp_path)
    uids = release.running(2)
    resize(pod, 5)
    release.upgrade(size=3, autoscaling={**ON, "idleSeconds": 30, "max": 6}, jobLabels={"a": "b"})
    assert size(release) == 5
    policy = json.loads(release.get("configmap", "mc-config")["data"]["agent.json"])["policy"]
    assert (policy["idle"], policy["max"]) == (30, 6)
    # off: `size` counts again, without a conflict
    release.upgrade(autoscaling={"enabled": False})
    assert size(release) == 3
    assert json.loads(release.get("configmap", "mc-config")["data"]["agent.json"])["policy"] is None
    assert not release.items("roles,rolebindings")
    release.upgrade(size=4)
    assert size(release) == 4
    # on again
    release.upgrade(autoscaling=ON)
    assert size(release) == 4
    resize(pod, 7)
    release.upgrade(size=1)
    assert size(release) == 7
    release.upgrade(autoscaling={"enabled": False})
    assert size(release) == 1
    assert release.running(1)[0] == uids[0]


@pytest.mark.parametrize("grown", [1, 6], ids=["shrinks", "grows"])
def test_an_upgrade_does_not_undo_a_step_that_comes_while_it_renders(
    release: Release, tmp_path: Path, grown: int
) -> None:
    release.install(**SCALES)
    agent(release, tmp_path)
    # the values of such an upgrade stay those of the release
    slow = while_rendering(release, tmp_path, grown)
    for _ in range(2):
        resize(agent(release, tmp_path), 4)
        assert lines_with(slow.refuse(autoscaling={**ON, "idleSeconds": 30}), REFUSED)
        assert size(release) == grown
    release.upgrade(autoscaling={**ON, "idleSeconds": 30})
    assert size(release) == grown


def test_a_rollback_does_not_shrink_a_cluster_that_has_grown(release: Release, tmp_path: Path) -> None:
    release.install(**SCALES)
    pod = agent(release, tmp_path)
    resize(pod, 4)
    release.upgrade(jobLabels={"a": "b"})
    for revision, live in ((1, 4), (1, 6), (2, 6)):
        resize(pod, live)
        with pytest.raises(ProcessError) as refused:
            release.ok("rollback", revision)
        assert lines_with(str(refused.value), REFUSED)
        assert size(release) == live
    # the size of that revision
    resize(pod, 4)
    release.ok("rollback", 2)
    assert size(release) == 4


def while_rendering(release: Release, folder: Path, grown: int) -> Release:
    """Return the release with a Helm during whose rendering the agent changes the size."""
    program = folder / "bin" / "minicluster"
    program.parent.mkdir()
    paths = [str(ROOT), *(str(Path(file).parent) for file in (__file__, kube.__file__, state.__file__))]
    renderer = shutil.which("minicluster", path=release.helm.environment["PATH"])
    config = json.loads(release.cluster.kubeconfig.read_text())["clusters"][0]["cluster"]
    program.write_text(
        f"""#!{sys.executable}
import os, pathlib, sys
sys.path[:0] = {paths!r}
import autoscaled, kube
pod = kube.Kube({config["server"]!r}, {release.namespace!r}, "mc", pathlib.Path({str(folder)!r}))
autoscaled.resize(pod, {grown})
os.execv({renderer!r}, [{renderer!r}, *sys.argv[1:]])
"""
    )
    program.chmod(0o755)
    path = os.pathsep.join([str(program.parent), release.helm.environment["PATH"]])
    return replace(release, helm=release.helm.with_env(PATH=path))


def test_a_size_set_by_hand_is_kept_while_autoscaling_is_on(release: Release, tmp_path: Path) -> None:
    release.install(**SCALES)
    patch = json.dumps({"spec": {"completions": 6, "parallelism": 6}})
    release.kubectl("patch", "job", "mc", "--type=merge", f"--patch={patch}")
    labels, off = {"jobLabels": {"a": "b"}}, {"autoscaling": {"enabled": False}}
    if release.helm.major == 4:
        # kubectl owns the size now: Helm 4 refuses and names kubectl
        for values in (labels, off):
            assert '"kubectl-patch" using batch/v1' in release.refuse(**values).replace("\\", "")
        assert size(release) == 6
        # this ends once the agent has changed the size, because the agent owns no field
        resize(agent(release, tmp_path), 5)
    live = size(release)
    release.upgrade(**labels)
    assert size(release) == live
    release.upgrade(**off)
    assert size(release) == 2


def turned_on(what: str) -> str:
    return f"{what}.enabled can't be turned on for the live MiniCluster mc, which was installed without it; {WAY}"


@pytest.mark.any_helm
@pytest.mark.parametrize(
    ("installed", "refused"),
    [
        (
            {"autoscaling": {}},
            [
                ({"autoscaling": ON}, turned_on("autoscaling")),
                ({"autoscaling": {}, "metrics": ON}, turned_on("metrics")),
            ],
        ),
        ({"autoscaling": {}, "metrics": ON}, [({"autoscaling": ON}, turned_on("autoscaling"))]),
        (
            {},
            [
                ({"maxSize": 9}, f"maxSize can't change on the live MiniCluster mc: it is 8, asked is 9; {LOSS}"),
                ({"metrics": {"port": 9100}}, "it is 8051, asked is 9100"),
            ],
        ),
    ],
    ids=["off", "metrics", "on"],
)
def test_upgrades_that_autoscaling_does_not_allow_are_refused_by_name(
    release: Release, installed: dict[str, Any], refused: list[tuple[dict[str, Any], str]]
) -> None:
    release.install(**{**SCALES, **installed})
    before = release.objects()
    for asked, message in refused:
        assert lines_with(release.refuse(**asked).replace("\\n", "\n"), message)
    assert release.objects() == before


def test_metrics_can_be_turned_on_and_off_beside_a_live_agent(release4: Release) -> None:
    release4.install(**SCALES)
    uids = release4.running(2)
    for enabled in (True, False):
        release4.upgrade(metrics={"enabled": enabled})
        settings = json.loads(release4.get("configmap", "mc-config")["data"]["agent.json"])
        assert settings["port"] == (8051 if enabled else None)
    assert release4.running(2) == uids
