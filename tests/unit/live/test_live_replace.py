"""The steps of `minicluster replace`, by what is there and whether the live Job takes the values."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from minicluster.errors import ToolError
from minicluster.kube.kubectl import Kubernetes
from minicluster.lifecycle import replace
from minicluster.status.lookup import Cluster
from status_samples import job

DIFFERENCES = [("image", "a", "b")]
SETTLES = ["check", "admission", "settle", "remove", "make"]
ANEW = ["check", "admission", "remove", "make"]


@pytest.mark.parametrize(
    ("is_live", "is_refused", "is_half", "steps"),
    [
        pytest.param(True, False, False, ["upgrade"], id="the live Job takes the values"),
        pytest.param(True, True, False, SETTLES, id="it refuses them"),
        pytest.param(True, False, True, ["check", "make"], id="it takes them, and was made by a replacement"),
        pytest.param(True, True, True, SETTLES, id="it refuses them, and was made by a replacement"),
        pytest.param(False, False, False, ANEW, id="the Job is gone"),
        pytest.param(False, False, True, ANEW, id="the Job is gone: a replacement was interrupted"),
    ],
)
def test_replace_removes_a_job_only_if_it_refuses_the_values(
    monkeypatch: pytest.MonkeyPatch, *, is_live: bool, is_refused: bool, is_half: bool, steps: list[str]
) -> None:
    done: list[str] = []

    def step(name: str) -> Any:
        return lambda *_, **__: done.append(name)

    suspended = job()
    suspended["spec"]["suspend"] = True  # the first check is of running Jobs alone
    kubernetes, found = Kubernetes(namespace="lab"), SimpleNamespace(name="mini", job=SimpleNamespace(namespace="lab"))
    cluster = Cluster(kubernetes, "mini")
    live = suspended if is_live else {}
    lead: Any = SimpleNamespace()
    one = replace.Replacement(kubernetes, cluster, "mini", live, lead, 1, is_half, print)
    queue = SimpleNamespace(settle=step("settle"))
    monkeypatch.setattr(replace.leaving, "held_queue", lambda _cluster, _job, lead: nullcontext(lead and queue))
    monkeypatch.setattr(replace, "_tell_jobs", lambda *_: False)
    plan = SimpleNamespace(record={}, values={}, jobs=[])
    monkeypatch.setattr(Kubernetes, "kubectl", lambda *_, **__: '{"serverVersion": {"gitVersion": "v1.36.0"}}')
    monkeypatch.setattr(replace, "find", lambda *_: found)
    monkeypatch.setattr(replace, "_prepare", lambda *_: (one, None))
    monkeypatch.setattr(replace.remaking, "render", lambda *_: plan)
    monkeypatch.setattr(replace.remaking, "changes", lambda *_: DIFFERENCES)
    monkeypatch.setattr(replace.remaking, "check", step("check"))
    monkeypatch.setattr(replace.revisions, "is_refused", lambda *_: ToolError("no") if is_refused else None)
    monkeypatch.setattr(replace.revisions, "upgrade", step("upgrade"))
    monkeypatch.setattr(replace.remaking, "check_admission", step("admission"))
    monkeypatch.setattr(replace.remaking, "remove", step("remove"))
    monkeypatch.setattr(replace, "_make", step("make"))
    replace.replace(kubernetes, "mini", (), None, 1, lambda _: None)
    assert done == steps
