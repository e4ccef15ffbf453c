"""The SDK's scaling and releases, and the types of the programs in its documentation."""

import inspect
import json
import re
import subprocess
import sys
from typing import Any

import pytest
from fake_kube import FakeChannel, FakeKube
from minicluster.commands import lifecycle
from minicluster.errors import END
from minicluster.kube.tool import CommandError
from minicluster.sdk import (
    ArgumentError,
    CreateOptions,
    EndedError,
    MiniCluster,
    ReleaseError,
    SdkError,
    WaitTimeoutError,
    release,
)
from minicluster.sdk.exceptions import translated
from status_samples import job, pod
from support import ROOT

GROUPS = {"groups[0].name": "gpu", "groups[0].maxSize": "3", "groups[1].name": "spot", "groups[1].maxSize": "2"}


HOME = [{"name": "mini", "env": [{"name": "MINICLUSTER_HOME", "value": "/mnt/flux"}]}]
#: The lead's replies to the question which nodes are up
REPLIES = b'{"ready": "0.88.0"}\n{"key": "", "up": 2}\n{"key": "", "online": true}\n'


@pytest.fixture(autouse=True)
def _post_renderer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: "/bin/minicluster")


def lab(policy: Any = None, found: Any = None, run: Any = None) -> FakeKube:
    """Return a namespace with the MiniCluster mini, which has two groups; ``policy`` is its autoscaler's."""
    settings = {"policy": policy, "groups": [{"name": "gpu", "policy": policy}, {"name": "spot", "policy": policy}]}
    has = {
        "job": found or job(**GROUPS),
        "pods": [{**pod(0, uid="u"), "spec": {"containers": HOME}}],
        "jobs": [],
        "configmap": {"data": {"agent.json": json.dumps(settings)}},
        "helm": {"metadata": '{"chart": "minicluster"}', "values": '{"groups": [{"name": "gpu"}, {"name": "spot"}]}'},
    }
    return FakeKube(has=has, commands=[run or (lambda _: FakeChannel())])


def of(kube: FakeKube) -> MiniCluster:
    return MiniCluster(kube, "mini", is_own=False)


def test_sdk_scale_of_an_autoscaled_cluster_asks_its_autoscaler() -> None:
    channels = [FakeChannel(), FakeChannel(REPLIES), *(FakeChannel() for _ in range(3))]
    talk, kube = channels[1], lab({"min": 1, "max": 6}, run=lambda _: channels.pop(0))
    told: list[str] = []
    cluster = of(kube)
    cluster.scale(3, wait=True, progress=told.append)
    assert json.loads(talk.written.splitlines()[-1]) == {"key": "", "online": [3, 8], "first": 0, "more": True}
    asks = "mini sizes itself from 1 to 6: asked it for at least 3 nodes; `minicluster scale mini auto` withdraws that"
    assert told == [asks, "mini: 2 nodes up"]
    cluster.scale(None)
    cluster.scale(0, group="gpu")
    cluster.scale(None, group="gpu")
    words = [words for _, words in kube.ran if "python" not in words]
    assert words == [("/mnt/flux/bin/minicluster-scale", word) for word in ("3", "auto", "gpu=0", "gpu=auto")]
    kube.commands[:] = [lambda _: FakeChannel(code=1, stderr=b"minicluster-scale: 9 is over the maximum of 6\n")]
    with pytest.raises(ArgumentError, match=r"^mini sizes itself: 9 is over the maximum of 6$"):
        cluster.scale(9)


def test_sdk_scale_of_a_group_upgrades_it_and_waits_for_its_ranks() -> None:
    channel = FakeChannel(REPLIES)
    kube = lab(run=lambda _: channel)
    of(kube).scale(2, group="spot", wait=True)
    upgrade = next(words for words in kube.helms if words[0] == "upgrade")
    assert upgrade[4:6] == ("--set-json", 'groups=[{"name": "gpu"}, {"name": "spot", "size": 2}]')
    assert json.loads(channel.written.splitlines()[-1]) == {"key": "", "online": [2, 2], "first": 11, "more": False}


def test_sdk_scale_refuses_what_has_no_size_as_the_command_does() -> None:
    with pytest.raises(EndedError, match=r"^mini has ended, so it has no size: Complete: x: said why$"):
        of(lab(found=job(end=("Complete", "x")))).scale(3)
    burst = lab(found=job(**{"flux.bursting.leadBroker.address": "host:8050"}))
    with pytest.raises(
        ArgumentError, match=r"^mini is a burst, and the Flux of its root has its nodes: leave out the wait$"
    ):
        of(burst).scale(3, wait=True)
    with pytest.raises(ReleaseError, match=r"^the size 9 is above the maxSize of mini, 8: lower it"):
        of(lab()).scale(9)
    assert burst.helms == []


@pytest.mark.parametrize(
    ("size", "group", "message"),
    [
        (2, "cpu", r"mini has no group cpu: there are gpu, spot"),
        (-1, "gpu", r"size=-1: give a whole number, 0 or more"),
        (0, "", r"size=0: give a whole number, 1 or more; delete\(\) removes the MiniCluster"),
        (None, "gpu", r"mini has no autoscaler that could choose the size of gpu: give a number"),
    ],
)
def test_sdk_scale_refuses_what_is_no_size_of_a_group(size: int | None, group: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{message}$"):
        of(lab()).scale(size, group=group)


def test_a_release_error_leaves_out_the_words_of_helm() -> None:
    kube = lab()
    kube.has["helm"] = CommandError("helm install", f"FAILED: YAML parse error on minicluster: no{END}: error")
    with pytest.raises(ReleaseError, match=r"^no$"), translated():
        release.install(kube, "mini", {}, "", {}, None, print)


def test_create_has_the_words_of_the_command() -> None:
    kube, told = lab(), []
    kube.has["storageclasses.storage.k8s.io"] = [
        {"metadata": {"name": "disks"}, "provisioner": "ebs.csi.aws.com"},
        {"metadata": {"name": "far"}, "provisioner": "nfs.csi.k8s.io"},
    ]
    options: Any = {"image": "a:b", "nodes": 2, "max_nodes": 4, "autoscale": True, "keep": "1Gi@disks"}
    values = {"containers": [{}, {"runFlux": True}], "tasks": 3}
    release.install(kube, "mini", values, "", options, None, told.append)
    [words] = kube.helms
    assert (words[:2], words[3:5], words[-2:]) == (
        ("install", "mini"),
        ("--values", "-"),
        ("--post-renderer", "minicluster"),
    )
    own = dict(word.removeprefix("--set-json=").split("=", 1) for word in words[5:-2])
    assert {path: own[path] for path in ("size", "maxSize", "autoscaling.min", "containers[1].image")} == {
        "size": "2",
        "maxSize": "4",
        "autoscaling.min": "2",
        "containers[1].image": '"a:b"',
    }
    assert own["containers[1].volumes.data.storageClass"] == '"disks"'
    assert told[0].startswith("helm install mini ")
    assert told[1].startswith("the storage class disks (ebs.csi.aws.com) has volumes for one Kubernetes node at a time")


#: What `minicluster create` calls in another way, and what it prints in place of making anything
OTHER_NAMES = {"most": "max_nodes", "autoscales": "autoscale", "no_wait": "wait"}
PRINTED = {"print_values"}


def test_create_has_all_that_the_command_has() -> None:
    found = {OTHER_NAMES.get(str(each.name), each.name) for each in lifecycle.create_command.params} - PRINTED
    parameters = {*inspect.signature(MiniCluster.create).parameters} - {"options", "values", "chart", "progress"}
    assert parameters | {*CreateOptions.__annotations__} == found


def test_create_may_wait_for_the_quorum(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = lab()
    told: list[str] = []
    monkeypatch.setattr("minicluster.sdk.cluster.settled", lambda *_: kube)
    MiniCluster.create("mini", image="a", progress=told.append)
    assert len(told) == 1
    MiniCluster.create("mini", image="a", wait=True, timeout=10, progress=told.append)
    assert told[2:] == ["mini: Running: `minicluster status mini` shows it"]
    kube.has["pods"] = []
    with pytest.raises(WaitTimeoutError, match=r"gave up after 0.1 s.*; the release stays: `minicluster delete mini`"):
        MiniCluster.create("mini", image="a", wait=True, timeout=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max": 3}, "max is not an option of create: give one of image, nodes, cpu, memory, gpus, files, sets"),
        (
            {"nodes": 3, "max_nodes": 2},
            "3 nodes are more than the maximum of 2: lower it, or raise the maximum",
        ),
        ({"autoscale": True}, "autoscaling needs a maximum: give --max, max_nodes in Python, the most nodes that may "),
        ({"keep": "ten"}, "'ten' is not the size of a volume: write it as 10Gi, or 10Gi@CLASS"),
    ],
)
def test_create_refuses_an_option_that_it_does_not_have(options: Any, message: str) -> None:
    with pytest.raises(SdkError, match=re.escape(message)), translated():
        release.install(lab(), "mini", {}, "", options, None, print)


def test_values_that_are_no_mapping_are_refused() -> None:
    message = r"^values='values.yaml': give a dict; files=\[…\] takes values files$"
    values: Any = "values.yaml"
    with pytest.raises(ArgumentError, match=message):
        release.install(lab(), "mini", values, "", {}, None, print)
    with pytest.raises(ArgumentError, match=message):
        release.run(lab, ["true"], values, None, {}, print)


def test_the_programs_in_the_sdk_documentation_pass_the_type_check(tmp_path):
    page = (ROOT / "docs/how-to/use-from-python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "example.py").write_text("\n".join(blocks))
    assert "executor.map" in blocks[0]
    # by the options of `make lint`, and so with its cache: what they import has been read
    words = [sys.executable, "-m", "mypy", tmp_path / "example.py"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.startswith("Success"), done.stdout + done.stderr
