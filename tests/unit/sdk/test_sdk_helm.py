"""The SDK's scaling and releases, and the types of the programs in its documentation."""

import json
import re
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from minicluster.errors import END
from minicluster.kubectl import CommandError, Kubernetes
from minicluster.sdk import ArgumentError, ReleaseError, Result, cluster, release
from status_samples import job
from support import ROOT

GROUPS = {"groups[0].name": "gpu", "groups[0].maxSize": "3", "groups[1].name": "spot", "groups[1].maxSize": "2"}


class Commands:
    """A lead that runs commands, behind a `KubeClient`; ``policy`` is its autoscaler's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, policy: Any, code: int = 0, stderr: str = "") -> None:
        self.policy, self.result, self.ran, self.asked = policy, Result(code, "", stderr), [], []
        pod = SimpleNamespace(name="mini-0-x", runner="mini")
        monkeypatch.setattr(cluster, "find_job", lambda *_: job())
        monkeypatch.setattr(cluster, "wait_for_lead", lambda *_: SimpleNamespace(pod=pod, home="/mnt/flux"))
        monkeypatch.setattr(cluster, "finish", lambda result: result)
        self.cluster = cluster.MiniCluster(self, "mini", is_own=False)
        self.cluster._ask = lambda question, _timeout: self.asked.append(question)

    namespace = "lab"

    def get(self, kind: str, name: str) -> Any:
        if kind == "job":
            return job(**GROUPS)
        assert (kind, name) == ("configmap", "mini-config")
        settings = {"policy": self.policy, "groups": [{"name": "gpu", "policy": self.policy}]}
        return {"data": {"agent.json": json.dumps(settings)}}

    def run(self, pod: str, container: str, words: list[str]) -> Result:
        assert (pod, container) == ("mini-0-x", "mini")
        self.ran.append(words)
        return self.result


def test_sdk_scale_of_an_autoscaled_cluster_asks_its_autoscaler(monkeypatch):
    lead = Commands(monkeypatch, {"min": 1, "max": 6})
    told: list[str] = []
    lead.cluster.scale(3, wait=True, progress=told.append)
    lead.cluster.scale(None)
    lead.cluster.scale(0, group="gpu")
    lead.cluster.scale(None, group="gpu")
    assert lead.ran == [["/mnt/flux/bin/minicluster-scale", word] for word in ("3", "auto", "gpu=0", "gpu=auto")]
    (question,) = lead.asked
    assert question.message() == {"key": question.key, "online": [3, 8], "first": 0, "more": True}
    assert question.receive({"key": question.key, "up": 2}) == []
    assert told == ["2 nodes up"]
    assert question.receive({"key": question.key, "online": True}) is None
    assert question.answer.result(0) is True
    lead.result = Result(1, "", "minicluster-scale: 9 is over the maximum of 6\n")
    with pytest.raises(ArgumentError, match=r"^size=9: mini sizes itself: 9 is over the maximum of 6$"):
        lead.cluster.scale(9)
    with pytest.raises(ArgumentError, match=r"^size=None: mini has no autoscaler"):
        Commands(monkeypatch, None).cluster.scale(None)


def test_sdk_scale_of_a_group_upgrades_it_and_waits_for_its_ranks(monkeypatch):
    lead, upgraded = Commands(monkeypatch, None), []
    monkeypatch.setattr(release, "resize", lambda _, *words: upgraded.append(words))
    lead.cluster.scale(2, group="spot", wait=True)
    lead.cluster.scale(0, group="gpu")
    lead.cluster.scale(2)
    assert upgraded == [("mini", 2, "spot"), ("mini", 0, "gpu"), ("mini", 2, "")]
    (question,) = lead.asked
    assert question.message() == {"key": question.key, "online": [2, 2], "first": 11, "more": False}


@pytest.mark.parametrize(
    ("size", "group", "message"),
    [
        (2, "cpu", r"group='cpu': mini has no such group: there are gpu, spot"),
        (-1, "gpu", r"size=-1: give a whole number, 0 or more"),
        (0, "", r"size=0: give a whole number, 1 or more; delete\(\) removes the MiniCluster"),
        (None, "gpu", r"size=None: mini has no autoscaler that could choose its size: give a number"),
    ],
)
def test_sdk_scale_refuses_what_is_no_size_of_a_group(monkeypatch, size, group, message):
    with pytest.raises(ArgumentError, match=f"^{message}$"):
        Commands(monkeypatch, None).cluster.scale(size, group=group)


def test_a_release_error_leaves_out_the_words_of_helm(monkeypatch):
    def upgrade(*_: Any, **__: Any) -> str:
        raise CommandError("helm upgrade", f"UPGRADE FAILED: YAML parse error on minicluster: no{END}: error")

    monkeypatch.setattr(Kubernetes, "helm", upgrade)
    monkeypatch.setattr("shutil.which", lambda _: "/bin/minicluster")
    kube = SimpleNamespace(context="", namespace="lab")
    with pytest.raises(ReleaseError, match=r"^no$"):
        release.install(kube, "mini", {})


def test_the_programs_in_the_sdk_documentation_pass_the_type_check(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "sdk.md").read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = true\n")
    (tmp_path / "example.py").write_text("\n".join(blocks))
    assert "executor.map" in blocks[0]
    words = [sys.executable, "-m", "mypy", "--cache-dir", ROOT / ".mypy_cache" / "user", "example.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.startswith("Success"), done.stdout + done.stderr
