"""Schedules on a real Kubernetes: a CronJob's pod wakes a cluster that sleeps, and submits what is due, once."""

import json
from pathlib import Path
from typing import Any

import pytest
from pod_jobs import ONE_CORE, QUIET
from real_cluster import IN_PODS, Install

from tools.clients import until
from tools.releases import STEP_SECONDS, FluxRelease
from tools.testbed import NAME, bind

pytestmark = IN_PODS

SECONDS = 10
WORDS = ["echo", "$(HOME) 'a' \"b\" $HOME `id`", "", "é"]
VALUES: dict[str, Any] = {
    "size": 1,
    "autoscaling": {"enabled": True, "suspendAfterSeconds": SECONDS},
    "state": {"claimName": "state"},
    # in a test it is made by hand, with the name that a CronJob would give its Job
    "schedules": [
        {"name": "night", "cron": "0 0 1 1 *", "command": WORDS, "options": ["--job-name=mine"]},
        {"name": "wrong", "cron": "@yearly", "command": ["true"], "options": ["--no-such-option"]},
    ],
    **QUIET,
}


@pytest.fixture
def cluster(release: Install, volume: str, tmp_path: Path) -> FluxRelease:
    found = release(VALUES, ONE_CORE)
    bind(found, "state", volume, tmp_path / "state")
    return found


def is_asleep(cluster: FluxRelease) -> bool:
    return bool(cluster.get("job")["spec"].get("suspend")) and not cluster.pods()


def run_due(cluster: FluxRelease, job: str, schedule: str = "night") -> tuple[str, str]:
    """Make the Job of a run, as a CronJob does; return how it ended, and its log."""
    cluster.kubectl("create", "job", job, f"--from=cronjob/{NAME}-{schedule}")

    def ended() -> str:
        job_now = json.loads(cluster.kubectl("get", "job", job, "--output=json"))
        found = [c["type"] for c in job_now.get("status", {}).get("conditions", []) if c["status"] == "True"]
        return next((each for each in found if each in ("Complete", "Failed")), "")

    until(ended, 3 * STEP_SECONDS, f"the end of {job}")
    return ended(), cluster.kubectl("logs", f"job/{job}")


def test_a_run_that_is_due_wakes_the_cluster_and_is_submitted_once(cluster: FluxRelease) -> None:
    until(lambda: is_asleep(cluster), 3 * STEP_SECONDS, "the first sleep")
    due = f"{NAME}-night-29407800"
    how, log = run_due(cluster, due)
    wakes = f"minicluster: {NAME} is suspended, idle for {SECONDS} s: waking it"
    assert (how, log.splitlines()[0]) == ("Complete", wakes)
    [word, job, said] = log.splitlines()[-1].split()
    assert (word, said) == ("job", "submitted")
    assert cluster.flux(0, "job", "attach", job) == f"{' '.join(WORDS[1:])}\n"
    assert cluster.flux(0, "jobs", "-an", "-o", "{name} {result}") == "mine COMPLETED\n"

    until(lambda: is_asleep(cluster), 3 * STEP_SECONDS, "the second sleep")
    # the Job of a run whose end nobody saw, after the queue was saved and restored
    cluster.kubectl("delete", "job", due)
    assert run_due(cluster, due)[1].splitlines()[-1] == f"job {job} was submitted before"
    # the record of the last run is overwritten: the job itself has the mark, too
    cluster.flux(0, "kvs", "unlink", "minicluster.schedules.night")
    cluster.kubectl("delete", "job", due)
    assert run_due(cluster, due)[1].splitlines()[-1] == f"job {job} was submitted before"
    how, log = run_due(cluster, "wrong", "wrong")
    assert (how, log.splitlines()[-1]) == ("Failed", "minicluster: flux refused the job of wrong")
    assert len(cluster.flux(0, "jobs", "-an").splitlines()) == 1
