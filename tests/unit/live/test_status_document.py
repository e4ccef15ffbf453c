"""The whole document of ``minicluster status``, and its keys."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from minicluster.cluster.find import LiveCluster
from minicluster.cluster.job import read_job
from minicluster.cluster.pods import GroupNodes, read_pods
from minicluster.commands.status import status_command
from minicluster.status.document import document
from minicluster.status.snapshot import snapshot
from minicluster.status.table import table
from status_samples import (
    BUSY,
    FOUR,
    IDLE,
    JOBS,
    NOW,
    RUNNING,
    SETTINGS,
    STARTS,
    UNSCHEDULABLE,
    ended,
    flux,
    job,
    pod,
    show,
    waiting,
)

BUSY_IMAGE = "Pending: ImagePullBackOff: correct the image's name, or set pod.imagePullSecrets for its registry"


def test_the_status_document_has_these_fields_and_values() -> None:
    assert show(*BUSY) == {
        "name": "mini",
        "namespace": "lab",
        "age": 770,
        "state": "Running",
        "why": "",
        "size": 4,
        "sizeFrom": "job",
        "maxSize": 8,
        "failures": None,
        "pods": [
            {"ranks": "0-2", "reason": "Running"},
            {"ranks": "3", "reason": "Pending: ImagePullBackOff"},
            {"ranks": "4", "reason": "Running: Terminating"},
        ],
        "containers": [],
        "locations": [],
        "flux": "0.88.0",
        "scheduler": {"name": "Fluxion", "version": "0.54.0", "queuePolicy": "conservative", "matchPolicy": "lonode"},
        "autoscaling": {"min": 1, "max": 6},
        "quorum": {"needed": 4, "reached": True},
        "nodes": {"up": 1, "drained": 3, "missing": 1, "notStarted": 3},
        "drained": [
            {"ranks": "1", "reason": "bad [31mDIMM"},
            {"ranks": "2", "reason": "bad DIMM"},
            {"ranks": "4", "reason": "minicluster: the pod was told to stop"},
        ],
        "missing": [{"ranks": "3", "reason": BUSY_IMAGE}],
        "cores": {"free": 76, "allocated": 20, "total": 128},
        "gpus": {"free": 0, "allocated": 6, "total": 8},
        "jobs": {"pending": 4, "running": 3, "done": 120, "failed": 2, "canceled": 0, "timeout": 1, "purged": 0},
        "queues": [],
        "waiting": [],
        "longestWait": 62.4,
        "problems": [],
        "bursts": {"registered": 3, "up": 2},
        "groups": [],
    }


def test_the_status_says_that_pods_beyond_max_size_can_not_join() -> None:
    settings = SETTINGS | {"groups": [{"name": "gpu", "policy": None}]}
    groups = [GroupNodes("gpu", 3, 8, 2, {})]
    shown = show(job(size=9), FOUR, (settings, flux(problems=["a"])), groups)
    assert shown["problems"] == [
        "a",
        "the size is 9, and maxSize 8: pods beyond maxSize can't join: `minicluster scale mini 8` removes them",
        "the size of gpu is 3, and maxSize 2: pods beyond maxSize can't join: `minicluster scale mini gpu=2` removes "
        "them",
    ]


def test_failed_pods_of_groups_are_counted_by_group() -> None:
    failed = job()
    failed["spec"]["backoffLimit"], failed["status"]["failed"] = 100, 3
    groups = [GroupNodes("cpu", 1, 8, 1, {}), GroupNodes("gpu", 1, 9, 1, {}, failures=1)]
    settings = SETTINGS | {"groups": [{"name": "cpu", "policy": None}, {"name": "gpu", "policy": None}]}
    shown = show(failed, FOUR, (settings, flux()), groups)
    assert shown["failures"] == {"pods": 3, "most": 100, "groups": {"cpu": 0, "gpu": 1}}
    row = "\nFailures     3 pods, 1 pod of group gpu; a Job ends with more than 100\n             (backoffLimit)\n"
    assert row in table(shown)
    del failed["status"]["failed"]
    row = "\nFailures     1 pod of group gpu; a Job ends with more than 100 (backoffLimit)\n"
    assert row in table(show(failed, FOUR, (settings, flux()), groups))


def test_the_quorum_is_that_of_the_start() -> None:
    quorum = [line for line in table(show(job(size=1), FOUR[:1], (SETTINGS, flux()))).splitlines() if "Quorum" in line]
    assert quorum == ["Quorum       4, reached at the start"]


def test_the_quorum_lacks_workers_for_one_reason_whatever_kubernetes_says_of_each() -> None:
    image = "correct the image's name, or set pod.imagePullSecrets for its registry"
    pods = [
        pod(0, STARTS),
        pod(1, waiting("ImagePullBackOff", "Back-off")),
        pod(2, waiting("ErrImagePull", "not there")),
        pod(3, UNSCHEDULABLE),
    ]
    shown = show(job(), pods, (SETTINGS, flux(online="0")))
    said = f"waits for the quorum, 1 of 4 nodes are up: 1-2 are Pending: ImagePullBackOff: Back-off: {image}"
    assert (shown["state"], shown["why"]) == ("Starting", said)


UNFIT = "its check failed: nvidia-smi: No devices were found"


def test_the_quorum_lacks_workers_whose_check_failed() -> None:
    pods = [pod(0, STARTS), *(pod(rank, STARTS, created="2030-01-01T11:59:59Z") for rank in (1, 2, 3))]
    drained = {"1": UNFIT, "2": UNFIT, "3": "its check failed: exit code 1"}
    shown = show(job(), pods, (SETTINGS, flux(online="0", drained=drained)))
    said = f"waits for the quorum, 1 of 4 nodes are up: 1-2 stay out: {UNFIT}"
    assert (shown["state"], shown["why"]) == ("Starting", said)
    assert shown["missing"] == [{"ranks": "1-2", "reason": UNFIT}, {"ranks": "3", "reason": drained["3"]}]
    assert shown["nodes"] == {"up": 1, "drained": 0, "missing": 3, "notStarted": 4}
    one = show(job(), pods, (SETTINGS, flux(online="0,2-3", drained={"1": UNFIT})))
    assert one["why"] == f"waits for the quorum, 3 of 4 nodes are up: 1 stays out: {UNFIT}"


def test_a_worker_is_late_only_a_minute_after_its_container_has_started() -> None:
    """Its image may have taken minutes."""

    def why(started: str, lead: str = "2030-01-01T11:00:00Z") -> str:
        status = {"name": "mini", "state": {"running": {"startedAt": started}}}
        worker = pod(1, {**STARTS, "containerStatuses": [status]}, created="2030-01-01T11:00:00Z")
        pods = [pod(0, STARTS, created=lead), worker]
        return str(show(job(size=2), pods, (SETTINGS, flux(online="0", size=2)))["why"])

    assert "NetworkPolicy" not in why("2030-01-01T11:59:30Z")
    # the lead is a new one
    assert "NetworkPolicy" not in why("2030-01-01T11:30:00Z", lead="2030-01-01T11:59:30Z")
    assert why("2030-01-01T11:30:00Z").endswith("or a NetworkPolicy closes the brokers' port, by default 8050")


def test_the_check_of_an_earlier_pod_is_not_why_a_node_is_missing() -> None:
    pods = [*FOUR[:2], pod(2, UNSCHEDULABLE), pod(3, STARTS)]
    shown = show(job(), pods, (SETTINGS, flux(online="0-1", drained={"2": UNFIT, "3": "bad DIMM"})))
    reasons = [each["reason"] for each in shown["missing"]]
    assert reasons[0].startswith("Pending: Unschedulable")
    assert reasons[1] == "Running: its node is not in Flux"


def test_a_worker_that_a_quota_refuses_is_missing_for_that_reason() -> None:
    said = 'Error creating: pods "mini-1-x" is forbidden: exceeded quota: few'
    own = read_job(job(size=2))
    assert own
    mini = LiveCluster("mini", read_pods({"items": [pod(0, STARTS)]}), replace(own, why_no_pod=said))
    reason = f"no pod: {said}: lower resources or size, or ask for a larger quota"
    shown = document(snapshot(mini, NOW, lambda _: json.dumps([SETTINGS, flux(online="0")])))
    assert shown["missing"] == [{"ranks": "1", "reason": reason}]
    assert shown["why"] == f"waits for the quorum, 1 of 4 nodes are up: 1 has {reason}"


@pytest.mark.parametrize("minutes", [-60, 60])
def test_times_of_the_status_are_by_the_clock_of_the_lead(minutes: int) -> None:
    # by our clock a pod of 10 s is late, or not yet made
    pods = [pod(0, STARTS), pod(1, STARTS, "2030-01-01T11:59:50Z")]
    mini = LiveCluster("mini", read_pods({"items": pods}), read_job(job(size=2)))
    told = json.dumps([SETTINGS, {**flux(online="0"), "now": NOW.timestamp()}])
    shown = document(snapshot(mini, NOW + timedelta(minutes=minutes), lambda _: told))
    assert (shown["why"], shown["age"]) == ("waits for the quorum, 1 of 4 nodes are up", 770)


def test_the_status_document_says_where_the_pods_run() -> None:
    def at(index: int, node: str, zone: str = "", state: Mapping[str, Any] = RUNNING) -> dict[str, Any]:
        found = pod(index, state)
        found["metadata"]["labels"] |= {"topology.kubernetes.io/zone": zone} if zone else {}
        return found | {"spec": {"nodeName": node}}

    pods = [at(0, "n1", "a"), at(1, "n2", "b"), at(2, "n1", "a"), at(3, "n0"), pod(4, UNSCHEDULABLE)]
    shown = show(job(), pods, IDLE[2])
    assert shown["locations"] == [
        {"ranks": "3", "node": "n0", "zone": None},
        {"ranks": "0,2", "node": "n1", "zone": "a"},
        {"ranks": "1", "node": "n2", "zone": "b"},
    ]
    rows = "\nZones        3: zone unknown\n             0,2: a\n             1: b\n"
    assert rows in table(shown)
    assert "Zones" not in table(show(job(), [pods[0], pods[2]], IDLE[2]))


def test_jobs_whose_records_were_purged_are_part_of_those_that_are_done() -> None:
    jobs = {**JOBS, "inactive": 500, "successful": 490, "failed": 10, "purged": 700}
    shown = show(job(), FOUR, (SETTINGS, flux(online="0-3", jobs=jobs)))
    assert {key: shown["jobs"][key] for key in ("done", "failed", "purged")} == {
        "done": 1200,
        "failed": 10,
        "purged": 700,
    }
    assert "1200 done  10 failed, 700 purged\n" in table(shown)


def test_the_problem_of_a_lost_lead_says_when_and_why_it_was_lost() -> None:
    former = ended(137, "OOMKilled")
    former["containerStatuses"][0]["state"]["terminated"]["finishedAt"] = "2030-01-01T11:45:00Z"
    before = pod(0, former, "2030-01-01T11:40:00Z", name="mini-0-a")
    lost = "a former lead was lost (pod number 1 of this index), and its queue with it: state.capacity keeps a queue"
    answer = (SETTINGS, flux(online="0-3", problems=[lost, "another"]))
    assert show(job(), [*FOUR, before], answer)["problems"] == [
        f"{lost}; it was mini-0-a, 2030-01-01 11:45:00 UTC: Failed: OOMKilled, exit code 137: it needs more memory: "
        "raise resources.limits.memory",
        "another",
    ]
    assert show(job(), FOUR, answer)["problems"] == [lost, "another"], "its pod is gone"


def test_each_status_document_has_the_keys_that_the_help_lists() -> None:
    keys = list(show(*BUSY))
    assert [list(show(*seen)) for seen in (IDLE, (job(), [], None), (job(), FOUR, "no socket"))] == [keys] * 3
    lines = [line.strip().split("  ")[0] for line in (status_command.help or "").splitlines() if "  " in line.strip()]
    assert sorted(name for line in lines for name in line.split(", ")) == sorted(keys)
