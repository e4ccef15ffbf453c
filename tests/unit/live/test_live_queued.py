"""What `minicluster status` and `why` say of pods in a queue of Kueue that are not ready."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import scaled_job
from fake_kube import FakeKube, forbidden
from fake_kubectl import make_kubectl
from minicluster.cluster.find import find_by_name
from minicluster.cluster.reasons import why_held
from minicluster.status import snapshot
from minicluster.status.snapshot import of_kueue
from status_samples import NOW, SETTINGS, UNSCHEDULABLE, flux, job, pod, suspended

UNSET = {"min": 1, "max": 4, "give_up": None}
ASK = "ask its administrator to"


def at(minutes: float) -> str:
    """Return a time of so many minutes ago."""
    return (NOW - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def workload(*conditions: tuple[str, str, str, float], elastic: bool = False, **status: Any) -> dict[str, Any]:
    """Return a Workload with conditions of (type, status, reason, minutes ago)."""
    found = [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": f"Kueue's {reason}",
            "lastTransitionTime": at(ago),
        }
        for kind, status, reason, ago in conditions
    ]
    annotations = {"annotations": {"kueue.x-k8s.io/elastic-job": "true"}} if elastic else {}
    metadata = {"name": "job-mini", **annotations}
    return {"metadata": metadata, "spec": {"active": True}, "status": {"conditions": found, **status}}


def lost(minutes: float, **more: Any) -> dict[str, Any]:
    """Return a Workload of which a pod was lost."""
    return workload(("Admitted", "True", "Admitted", 99), ("PodsReady", "False", "WaitForRecovery", minutes), **more)


def starts(minutes: float, **more: Any) -> dict[str, Any]:
    """Return a Workload that was admitted, and of which not all pods have ever been ready."""
    return workload(("Admitted", "True", "Admitted", minutes), ("PodsReady", "False", "WaitForStart", 98), **more)


def queued_job() -> dict[str, Any]:
    found = job()
    found["metadata"] |= {"uid": "u-1", "labels": {"kueue.x-k8s.io/queue-name": "q"}}
    return found


def told(*workloads: Any, policy: Any = None) -> list[str]:
    """Return what is said of a cluster of four of which two pods are ready."""
    pods = [pod(0), pod(1), pod(2, UNSCHEDULABLE), pod(3, UNSCHEDULABLE)]
    kube = FakeKube(has={"job": queued_job(), "pods": pods, "workloads.kueue.x-k8s.io": list(workloads)})
    found = find_by_name(kube, "mini")
    assert found
    return list(of_kueue(kube, found, NOW, policy))


@pytest.mark.parametrize(
    ("found", "policy", "expected"),
    [
        (lost(0.9), None, []),
        (
            lost(8),
            None,
            [
                "not all pods have been ready for 8m (WaitForRecovery): in 22m, by default, Kueue suspends all pods: "
                f"{ASK} set recoveryTimeout to 0s (waitForPodsReady)"
            ],
        ),
        (
            starts(8),
            None,
            [
                "not all pods have been ready for 8m (WaitForStart): in 22m, by default, Kueue suspends all pods: "
                f"{ASK} give timeout more time (waitForPodsReady)"
            ],
        ),
        (
            lost(8, elastic=True),
            None,
            [
                "not all pods have been ready for 8m (WaitForRecovery): in 22m, by default, Kueue suspends all pods: "
                "`minicluster scale mini 2` gives up the others"
            ],
        ),
        *(
            (
                lost(8, elastic=True),
                UNSET | {"give_up": seconds},
                [
                    "not all pods have been ready for 8m (WaitForRecovery): in 22m, by default, Kueue suspends all "
                    f"pods: {way}"
                ],
            )
            for seconds, way in (
                (None, "after 15m the autoscaler gives up those whose nodes are not in Flux"),
                (600, "after 10m the autoscaler gives up those whose nodes are not in Flux"),
                (0, "`minicluster scale mini 2` gives up the others"),
            )
        ),
        (
            lost(45),
            None,
            [
                "not all pods have been ready for 45m (WaitForRecovery): Kueue's limit, 30m by default, is longer "
                "here, or off"
            ],
        ),
        (workload(("Admitted", "True", "Admitted", 99)), None, []),
        (workload(("Admitted", "True", "Admitted", 99), ("PodsReady", "True", "Started", 98)), None, []),
        (workload(("QuotaReserved", "False", "Pending", 99), ("PodsReady", "False", "WaitForStart", 98)), None, []),
        (
            workload(
                ("Admitted", "True", "A", 9), ("PodsReady", "False", "WaitForStart", 9), ("Finished", "True", "F", 1)
            ),
            None,
            [],
        ),
    ],
    ids=str,
)
def test_status_says_when_kueue_suspends_all_pods_because_of_one(found: Any, policy: Any, expected: list[str]) -> None:
    assert told(found, policy=policy) == expected


EVICTION = {"reason": "PodsReadyTimeout", "underlyingCause": "WaitForRecovery", "count": 2}


def test_status_says_that_kueue_had_suspended_all_pods() -> None:
    conditions = (("Admitted", "True", "Admitted", 5), ("Evicted", "False", "QuotaReserved", 5))
    begin = "Kueue suspended all pods, and started them again at 2030-01-01 11:55:00 UTC: "
    preempted = {"reason": "Preempted", "count": 1}
    found = workload(*conditions, schedulingStats={"evictions": [EVICTION, preempted]})
    assert told(found) == [f"{begin}PodsReadyTimeout, WaitForRecovery, 2 times; Preempted, 1 time"]
    assert told(workload(*conditions)) == [f"{begin}Kueue's QuotaReserved"]
    assert told(workload(*conditions[:1])) == []


def test_status_says_why_kueue_has_suspended_all_pods_and_when_it_tries_again() -> None:
    conditions = (("Evicted", "True", "PodsReadyTimeout", 1), ("QuotaReserved", "False", "PendingEvaluation", 1))
    status = {"schedulingStats": {"evictions": [EVICTION]}, "requeueState": {"count": 1, "requeueAt": at(-1)}}
    evicted = workload(*conditions, **status)
    codes = "Kueue's PodsReadyTimeout (PodsReadyTimeout, WaitForRecovery), in its queue again at 12:01:00 UTC"
    assert why_held({"items": [evicted]}) == f"{codes}; Kueue's PendingEvaluation (PendingEvaluation)"
    evicted["status"]["conditions"][1]["message"] = evicted["status"]["conditions"][0]["message"]
    assert why_held({"items": [evicted]}) == codes


@pytest.mark.parametrize(
    ("found", "workloads"),
    [
        pytest.param(job(), [lost(8)], id="no queue"),
        pytest.param(suspended(queue="q"), [lost(8)], id="suspended"),
        pytest.param(queued_job(), forbidden("workloads"), id="no right"),
    ],
)
def test_nothing_is_said_where_kueue_holds_no_pods_or_may_not_be_asked(found: Any, workloads: Any) -> None:
    kube = FakeKube(has={"job": found, "pods": [pod(0)], "workloads.kueue.x-k8s.io": workloads})
    mini = find_by_name(kube, "mini")
    assert mini
    assert list(of_kueue(kube, mini, NOW, None)) == []


def test_the_autoscaler_gives_up_pods_when_status_says_so() -> None:
    assert (snapshot.LIMIT_SECONDS, snapshot.GIVE_UP_SECONDS) == (scaled_job.KUEUE_SECONDS, scaled_job.GIVE_UP_SECONDS)


def test_status_has_it_as_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl = make_kubectl(tmp_path, monkeypatch)
    elastic = {"items": [lost(8, elastic=True)]}
    settings = {**SETTINGS, "policy": UNSET}
    done = kubectl("mini", "-o", "json", job=queued_job(), workloads=elastic, exec=[settings, flux()])
    # the samples are years from now
    assert json.loads(done.stdout)["problems"] == []
    monkeypatch.setattr(snapshot, "STARTING_SECONDS", float("-inf"))
    done = kubectl("mini", "-o", "json", job=queued_job(), workloads=elastic, exec=[settings, flux()])
    [problem] = json.loads(done.stdout)["problems"]
    assert problem.endswith(": after 15m the autoscaler gives up those whose nodes are not in Flux")
