"""Commands that need Flux wake a MiniCluster that its agent suspended; other commands do not."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fake_kube import FakeKube, Then
from live_kubectl import FORBIDDEN, Kubectl, lead, say
from minicluster.cluster.job import is_asleep, wake, was_woken
from minicluster.errors import StateError
from status_samples import RUNNING, STARTS, WHY, asleep, job, suspended

from tools.clients import Done

CONFLICT = 'Error from server (Conflict): Operation cannot be fulfilled on jobs.batch "mini": it has been modified'
WAKES = f"mini is suspended, {WHY}: waking it"
RESUMED = {"type": "Suspended", "status": "False", "reason": "JobResumed"}


# Which Jobs are asleep --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(asleep(), True, id="by the agent"),
        pytest.param(asleep(why="the value suspend"), False, id="by the value suspend"),
        pytest.param(suspended(), False, id="by a person"),
        pytest.param(suspended(queue="q"), False, id="by Kueue"),
        pytest.param({**asleep(), "spec": {"completions": 4, "suspend": False}}, False, id="resumed"),
        pytest.param(job(), False, id="running"),
        pytest.param({}, False, id="no Job"),
        pytest.param({"metadata": {}, "spec": {"suspend": True}}, False, id="no metadata"),
    ],
)
def test_only_a_job_that_its_agent_suspended_is_asleep(found: Mapping[str, Any], expected: bool) -> None:
    assert is_asleep(found) is expected


def test_a_resumed_job_was_woken_unless_kueue_admitted_it() -> None:
    found = job()
    assert not was_woken(found)
    found["status"]["conditions"] = [RESUMED]
    assert was_woken(found)
    found["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    assert not was_woken(found), "Kueue has admitted it"


# Requests to Kubernetes -------------------------------------------------------------------------------------------


def kube(found: Any, *answers: dict[str, Any] | None) -> FakeKube:
    """Return a Job, and the answers to patches: what the Job is then, or None for a conflict."""
    return FakeKube(has={"job": found, "patch": Then(answers or [None])})


def resume(version: str) -> dict[str, Any]:
    metadata = {"resourceVersion": version, "annotations": {"minicluster/suspended": None}}
    return {"metadata": metadata, "spec": {"suspend": False}}


def drop(version: str, *others: str) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": version, "managedFields": [{"manager": each} for each in others]}}


def test_wake_resumes_the_job_and_keeps_no_field_manager() -> None:
    api = kube(asleep("7", "helm"), asleep("8", "helm", "minicluster-agent"), asleep("9", "helm"))
    wake(api, "mini")
    assert api.patches == [resume("7"), drop("8", "helm")]


def test_wake_retries_when_others_change_the_job() -> None:
    ours = asleep("8", "helm", "minicluster-agent")
    # an empty patch tells what there is after a conflict
    api = kube(Then([asleep("6"), asleep("7")]), None, ours, None, asleep("10", "minicluster-agent"), asleep("11"))
    wake(api, "mini")
    assert api.patches == [resume("6"), resume("7"), drop("8", "helm"), {}, drop("10")]


def test_wake_gives_up_after_repeated_conflicts() -> None:
    api = kube(asleep(), *[None] * 5)
    with pytest.raises(StateError, match=r"^the Job was changed again and again while it was resumed: try again$"):
        wake(api, "mini")
    # the agent drops the field ownership that we could not drop
    ours = asleep("8", "minicluster-agent")
    api = kube(asleep(), ours, *[None, ours] * 5)
    wake(api, "mini")
    assert len(api.patches) == 11


def test_wake_changes_no_job_that_is_not_asleep() -> None:
    for found in (job(), suspended(), asleep(why="the value suspend"), {}):
        api = kube(found)
        wake(api, "mini")
        assert api.patches == []


# The commands -----------------------------------------------------------------------------------------------------


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    """A kubectl whose cluster sleeps until it is patched; then its lead starts and becomes ready."""
    kubectl = Kubectl(tmp_path)
    ready = {"items": [lead(tmp_path, RUNNING)]}
    # `minicluster flux` asks for the lead, its name and the Job, then waits: for the name, and for the first look
    kubectl.has(**{f"pods_{n}": {"items": []} for n in (1, 2, 3, 4)}, pods_5={"items": [lead(tmp_path, STARTS)]})
    kubectl.has(pods=ready, job=job(), **{f"job_{n}": asleep() for n in (1, 2, 3, 4, 5)})
    kubectl.has(patch=asleep("8"))
    return kubectl


def patches(kubectl: Kubectl) -> list[Any]:
    lines = [line for line in kubectl.asked() if line.startswith("patch ")]
    head = "patch job mini --type=merge --field-manager=minicluster-agent --patch="
    tail = " --output=json --show-managed-fields"
    assert all(line.startswith(head) and line.endswith(tail) for line in lines)
    return [json.loads(line.removeprefix(head).removesuffix(tail)) for line in lines]


def test_the_flux_command_wakes_a_sleeping_cluster_and_waits(kubectl: Kubectl) -> None:
    done = kubectl.run("flux", "mini", "--", "jobs", "-a")
    assert (done.code, done.out) == (0, "<jobs><-a>")
    assert done.err.splitlines(keepends=True)[0] == say(WAKES)
    assert patches(kubectl) == [resume("7")]


def test_the_flux_command_waits_for_a_cluster_that_somebody_else_woke(kubectl: Kubectl) -> None:
    woken = job()
    woken["status"]["conditions"] = [RESUMED]
    kubectl.has(job=woken, **{f"job_{n}": woken for n in (1, 2, 3, 4, 5)})
    assert kubectl.run("flux", "mini", "--", "jobs").out == "<jobs>"
    assert patches(kubectl) == []


def test_the_shell_command_wakes_a_sleeping_cluster(kubectl: Kubectl) -> None:
    (kubectl.folder / "home/flux-view.sh").write_text("")
    assert kubectl.run("shell", "mini", stdin="echo $((40 + 2))").out == "42\n"
    assert patches(kubectl) == [resume("7")]


def test_wait_for_the_quorum_wakes_a_sleeping_cluster(kubectl: Kubectl) -> None:
    kubectl.has(**{f"job_{n}": asleep() for n in (2, 3)}, job_4=job(), job_5=job())
    assert kubectl.run("wait", "mini").err.startswith(say(WAKES))
    assert patches(kubectl) == [resume("7")]


def test_status_list_logs_and_wait_for_the_end_do_not_wake_a_cluster(kubectl: Kubectl) -> None:
    kubectl.has(job=asleep(), pods={"items": []}, jobs={"items": [asleep()]})
    way = f"{WHY}: `minicluster flux mini -- COMMAND` or `minicluster scale mini SIZE` wakes it"
    for words in (("wait", "mini", "--for", "end", "--timeout", "1s"), ("status", "mini"), ("list",), ("logs", "mini")):
        shown = " ".join(kubectl.run(*words).both.split())
        assert "Suspended" in shown
        assert words[0] == "list" or way in shown
    assert patches(kubectl) == []


def test_waking_a_cluster_without_the_right_names_the_missing_right(kubectl: Kubectl) -> None:
    refused = FORBIDDEN.format("jobs.batch", "patch")
    kubectl.has(patch=refused)
    assert kubectl.run("flux", "mini", "--", "jobs") == Done(
        1, "", say(WAKES, f"{refused}: ask for a Role that allows it")
    )


def test_the_flux_command_retries_a_wake_that_conflicts(kubectl: Kubectl) -> None:
    kubectl.has(patch_1=CONFLICT, patch_2=asleep("8"), **{f"job_{n}": asleep() for n in range(1, 7)})
    (kubectl.folder / "patch").unlink()
    assert kubectl.run("flux", "mini", "--", "jobs").code == 0
    assert patches(kubectl) == [resume("7"), resume("7")]
