"""Evictions on a real Kubernetes: idle pods go, busy ones stay until their jobs have ended."""

from pathlib import Path
from typing import Any

from pod_jobs import ONE_CORE, QUIET, UNTIL_TOLD, ended, submit
from real_cluster import IN_PODS, NODE_FOLDER, Install

from tools.clients import ProcessError, until
from tools.releases import STEP_SECONDS, FluxRelease

pytestmark = IN_PODS
VALUES: dict[str, Any] = {"size": 3, **QUIET, "agent": {"periodSeconds": 1}, "pod": {"disruptionBudget": True}}


def is_refused(cluster: FluxRelease, index: int) -> bool:
    """Evict the pod of an index, and say whether the budget refused that."""
    try:
        cluster.evict(cluster.pod(index))
    except ProcessError as error:
        assert "TooManyRequests" in str(error)
        return True
    return False


def held(cluster: FluxRelease) -> list[str]:
    """Return the indexes that the budget selects."""
    selector = cluster.get("poddisruptionbudget")["spec"].get("selector", {})
    return [index for each in selector.get("matchExpressions", []) for index in each["values"]]


def test_a_busy_pod_is_evicted_only_when_its_job_has_ended(release: Install) -> None:
    cluster = release(VALUES, ONE_CORE)
    cluster.wait_for("0-2")
    until(lambda: held(cluster) == ["0"], STEP_SECONDS)
    job = submit(cluster, "-n1", "--requires=rank:2", "sh", "-c", UNTIL_TOLD)
    until(lambda: held(cluster) == ["0", "2"], STEP_SECONDS)
    uids = {index: pod["metadata"]["uid"] for index, pod in cluster.live_pods().items()}
    assert [is_refused(cluster, index) for index in (0, 2, 1)] == [True, True, False]
    cluster.exec(2, "touch", "/tmp/end")
    until(lambda: ended(cluster, job) == "COMPLETED", STEP_SECONDS)
    until(lambda: not is_refused(cluster, 2), STEP_SECONDS)
    after = cluster.running(3, STEP_SECONDS)
    cluster.wait_for("0-2")
    assert [index for index in uids if after[index] != uids[index]] == [1, 2]
    assert cluster.flux(0, "jobs", "-a", "-n", "-o", "{result}").split() == ["COMPLETED"]


@NODE_FOLDER
def test_a_lead_whose_queue_is_kept_is_evicted_while_there_is_no_job(release: Install, tmp_path: Path) -> None:
    (tmp_path / "archive").mkdir()
    archive = {"path": "/archive", "hostPath": str(tmp_path / "archive")}
    kept = {"size": 1, "archive": {"path": "/archive/state.tgz"}}
    cluster = release({**VALUES, **kept}, {**ONE_CORE, "volumes": {"archive": archive}})
    cluster.wait_for("0")
    [uid] = cluster.uids()
    job = submit(cluster, "sh", "-c", UNTIL_TOLD)
    until(lambda: held(cluster) == ["0"], STEP_SECONDS)
    assert is_refused(cluster, 0)
    cluster.exec(0, "touch", "/tmp/end")
    until(lambda: ended(cluster, job) == "COMPLETED", STEP_SECONDS)
    until(lambda: not is_refused(cluster, 0), STEP_SECONDS)
    assert cluster.running(1, STEP_SECONDS) != {0: uid}
    cluster.wait_for("0")
    assert ended(cluster, job) == "COMPLETED"
