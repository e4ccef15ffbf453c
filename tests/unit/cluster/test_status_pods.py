"""Which pod of an index counts, and which containers are shown as failing."""

from typing import Any

import pytest
from minicluster.cluster.pods import read_pods
from minicluster.status.table import table
from status_samples import CREATED, RUNNING, SETTINGS, ended, flux, job, pod, show


def test_status_counts_the_newest_pod_of_each_index() -> None:
    old, new = "2030-01-01T11:00:00Z", "2030-01-01T11:30:00Z"
    items = [pod(0, RUNNING, new), pod(0, ended(85), old), pod(1, ended(85), old), pod(1, RUNNING, new)]
    items += [pod(2, RUNNING, old), pod(2, RUNNING, old, deletionTimestamp=new), pod(3, labels={})]
    assert {index: one.state for index, one in read_pods({"items": items}).items()} == {
        0: "Running",
        1: "Running",
        2: "Running",
    }


def beside(name: str, restarts: int = 0, **state: Any) -> dict[str, Any]:
    """Return the status of a sidecar."""
    last = state.pop("last", None)
    return {"name": name, "restartCount": restarts, "state": state, "lastState": {"terminated": last} if last else {}}


CRASHES = beside("web", 3, waiting={"reason": "CrashLoopBackOff"}, last={"exitCode": 7})
RUNS_AGAIN = beside("web", 1, running={}, last={"exitCode": 7})
OF_MEMORY = {"exitCode": 137, "reason": "OOMKilled"}
KILLED = beside("mini", 1, running={}, last=OF_MEMORY)
KILLED_LONG_AGO = beside("mini", 1, running={"startedAt": "2030-01-01T10:00:00Z"}, last=OF_MEMORY)
KILLED_AGAIN = beside("mini", 3, waiting={"reason": "CrashLoopBackOff"}, last=OF_MEMORY)
MEMORY = ": it needs more memory: raise resources.limits.memory"
CONTAINERS: dict[str, tuple[list[list[dict[str, Any]]], list[tuple[str, str, str]]]] = {
    "all is well": ([[beside("web", running={})], [beside("web", 2, running={}, last={"exitCode": 0})]], []),
    "it begins": ([[beside("web", waiting={"reason": "PodInitializing"}), beside("a", waiting={})]], []),
    "it crashes": ([[CRASHES], [CRASHES]], [("web", "0-1", "CrashLoopBackOff, exit code 7, 3 restarts")]),
    "it runs again": ([[RUNS_AGAIN], [CRASHES]], [
        ("web", "0", "exit code 7, 1 restart"), ("web", "1", "CrashLoopBackOff, exit code 7, 3 restarts")]),
    "no image": ([[beside("a", running={}), beside("b", waiting={"reason": "ImagePullBackOff"})]],
        [("b", "0", "ImagePullBackOff")]),
    "it ended": ([[beside("a", terminated={"exitCode": 3})]], [("a", "0", "exit code 3")]),
    "it came back long ago": ([[KILLED_LONG_AGO, CRASHES]], [
        ("web", "0", "CrashLoopBackOff, exit code 7, 3 restarts")]),
    "the one that runs Flux": ([[beside("mini", running={})], [KILLED], [KILLED_AGAIN]], [
        ("mini", "1", f"OOMKilled, exit code 137, 1 restart{MEMORY}"),
        ("mini", "2", f"CrashLoopBackOff, OOMKilled, exit code 137, 3 restarts{MEMORY}")]),
}  # fmt: skip


@pytest.mark.parametrize("case", CONTAINERS)
def test_status_names_containers_that_fail(case: str) -> None:
    containers, expected = CONTAINERS[case]
    pods = [pod(index, {**RUNNING, "initContainerStatuses": found}) for index, found in enumerate(containers)]
    found = show(job(), pods, [SETTINGS, flux()])
    assert [tuple(one[key] for key in ("name", "ranks", "reason")) for one in found["containers"]] == expected
    rows = table(found).partition("\nContainers")[2].partition("\nCores")[0]
    lines = "".join(f" {ranks}: {name} fails: {why}" for name, ranks, why in expected)
    assert rows.split() == lines.split()


def test_a_runner_that_was_killed_and_left_its_work_to_a_new_pod_says_why() -> None:
    status = ended(85)
    [runner] = status["containerStatuses"]
    runner["lastState"] = {"terminated": OF_MEMORY}
    assert read_pods({"items": [pod(0, status)]})[0].reason == "OOMKilled, exit code 137"


def test_status_ignores_containers_of_pods_that_leave_or_have_ended() -> None:
    for one in (pod(0, {**RUNNING, "initContainerStatuses": [CRASHES]}, deletionTimestamp=CREATED),
                pod(0, {"phase": "Succeeded", "initContainerStatuses": [CRASHES]})):  # fmt: skip
        assert read_pods({"items": [one]})[0].failing == {}
