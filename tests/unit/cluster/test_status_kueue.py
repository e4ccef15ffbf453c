"""Why `minicluster status` says that Kueue holds a MiniCluster back, or keeps pods of it gated."""

import json
from pathlib import Path
from typing import Any

import pytest
from fake_kube import FakeKube
from fake_kubectl import asked, make_kubectl
from minicluster.cluster.find import find_by_name
from minicluster.cluster.reasons import why_held, with_reasons
from status_samples import GATED, SETTINGS, UNSCHEDULABLE, flux, job, pod, suspended, workload

NO_QUOTA = "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor a, 1 more needed"
#: With Kueue's reason code
TOLD = f"{NO_QUOTA} (R)"
ADMITTED = (("QuotaReserved", "True", "Quota reserved"), ("Admitted", "True", "The workload is admitted"))
NOT_YET = "it has not looked at the Job yet"
PREEMPTED = "Preempted to accommodate a workload (UID: 1) due to prioritization in the ClusterQueue"


def not_started(time: str, message: str) -> dict[str, Any]:
    made = workload(("QuotaReserved", "False", "Workload has finished"), ("Finished", "True", message))
    made["status"]["conditions"][1] |= {"reason": "FailedToStart", "lastTransitionTime": f"2026-01-01T00:00:0{time}Z"}
    return made


def queued_job() -> dict[str, Any]:
    """Return a Job in a queue that runs."""
    found = job()
    found["metadata"] |= {"uid": "u-1", "labels": {"kueue.x-k8s.io/queue-name": "q"}}
    return found


@pytest.mark.parametrize(
    ("workloads", "why"),
    [
        ([], NOT_YET),
        ([workload()], NOT_YET),
        ([{"metadata": {"name": "w"}, "spec": {}}], NOT_YET),
        ([workload(("QuotaReserved", "False", NO_QUOTA))], TOLD),
        ([workload(("QuotaReserved", "False", ""))], "R"),
        ([workload(("QuotaReserved", "True", "Quota reserved"))], NOT_YET),
        ([workload(("QuotaReserved", "False", NO_QUOTA), ("Evicted", "True", PREEMPTED))], f"{PREEMPTED} (R); {TOLD}"),
        ([workload(("QuotaReserved", "False", PREEMPTED), ("Evicted", "True", PREEMPTED))], f"{PREEMPTED} (R)"),
        ([workload(("QuotaReserved", "False", NO_QUOTA), ("Evicted", "False", PREEMPTED))], TOLD),
        ([workload(("QuotaReserved", "False", NO_QUOTA)), workload(("Finished", "True", "replaced"))], TOLD),
        ([workload(*ADMITTED), workload(("QuotaReserved", "False", NO_QUOTA))], TOLD),
        ([workload(("QuotaReserved", "False", NO_QUOTA)), workload(*ADMITTED)], TOLD),
        ([workload(*ADMITTED), workload(*ADMITTED, ("Finished", "True", "replaced"))], NOT_YET),
        ([workload(("Finished", "True", "replaced"))], NOT_YET),
        ([not_started("2", "b"), not_started("1", "a")], "it could not start the Job: b"),
        ([workload(("QuotaReserved", "False", NO_QUOTA)), not_started("1", "a")], TOLD),
        (
            [workload(("Evicted", "True", "the workload is deactivated"), active=False, name="w")],
            'deactivated (R): `kubectl patch workload w --type=merge -p \'{"spec":{"active":true}}\'` resumes it',
        ),
    ],
)
def test_status_says_why_kueue_holds_a_minicluster_back(workloads: list[dict[str, Any]], why: str) -> None:
    assert why_held({"items": workloads}) == why


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"items": [workload(("QuotaReserved", "False", "no\nquota"))]}, "Kueue's queue q: no quota (R)"),
        (None, f"Kueue's queue q: {NOT_YET}"),
        (
            'error: the server doesn\'t have a resource type "workloads"',
            "Kueue's queue q: its reason can't be read: the server doesn't have a resource type \"workloads\"",
        ),
    ],
)
def test_status_reads_the_kueue_workload_of_a_suspended_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any, why: str
) -> None:
    kubectl = make_kubectl(tmp_path, monkeypatch)
    done = kubectl("mini", "-o", "json", pods=None, job=suspended(queue="q"), workloads=answer)
    assert f'"state": "Suspended",\n  "why": "{why.replace(chr(34), chr(92) + chr(34))}"' in done.stdout
    assert asked(tmp_path)[-2] == (
        "get workloads.kueue.x-k8s.io --selector=kueue.x-k8s.io/job-uid=u-1 --ignore-not-found --output=json "
        "--request-timeout=10s"
    )


@pytest.mark.parametrize(("made", "state"), [(suspended(queue="q"), "Suspended"), (queued_job(), "Starting")], ids=str)
def test_status_says_that_multikueue_takes_the_job_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: dict[str, Any], state: str
) -> None:
    kubectl = make_kubectl(tmp_path, monkeypatch)
    made["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"
    held = workload(("QuotaReserved", "False", NO_QUOTA))
    found = json.loads(kubectl("mini", "-o", "json", pods=None, job=made, workloads={"items": [held]}).stdout)
    assert (found["state"], found["why"]) == (
        state,
        "Kueue's MultiKueue copies the Job alone to another cluster, where its pods can't run: install it there, or "
        "use a queue without MultiKueue",
    )


def test_status_reads_the_kueue_workload_of_a_job_with_gated_pods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubectl = make_kubectl(tmp_path, monkeypatch)
    grows, gated = job(size=2), pod(1, UNSCHEDULABLE) | {"spec": GATED}
    grows["metadata"]["uid"] = "u-1"
    answers = {"pods": {"items": [pod(0), gated]}, "job": grows, "exec": [SETTINGS, flux(online="0")]}
    held = workload(("QuotaReserved", "False", NO_QUOTA))
    done = kubectl("mini", "-o", "json", **answers, workloads={"items": [held]})
    reason = f"Pending: waits for Kueue: {TOLD}"
    assert json.loads(done.stdout)["missing"] == [{"ranks": "1", "reason": reason}]


@pytest.mark.parametrize(
    ("found", "is_asked"),
    [
        pytest.param(suspended(queue="q"), True, id="held"),
        pytest.param(suspended(), False, id="suspended by a person"),
        pytest.param(queued_job(), False, id="admitted"),
    ],
)
def test_kueue_is_asked_only_about_a_job_that_it_may_hold(found: Any, is_asked: bool) -> None:
    held = workload(("QuotaReserved", "False", NO_QUOTA))
    kube = FakeKube(has={"job": found, "pods": [pod(0)], "workloads.kueue.x-k8s.io": [held]})
    mini = find_by_name(kube, "mini")
    assert mini
    told = with_reasons(kube, mini).job
    assert told
    assert told.why_suspended == (f"Kueue's queue q: {TOLD}" if is_asked else "")
    assert any("workloads" in what for _, what, _ in kube.asked) == is_asked
