"""Schedules on a real API server with its controllers: the CronJobs, and what their Jobs and pods are called."""

from datetime import datetime
from typing import Any

import pytest

from tools.clients import until
from tools.releases import Release

OFTEN: dict[str, Any] = {"name": "often", "cron": "* * * * *", "command": ["true"]}
NIGHT: dict[str, Any] = {"name": "night", "cron": "30 2 * * mon-fri", "timeZone": "Europe/Berlin", "command": ["true"]}
#: Controllers look every ten seconds
MINUTE_SECONDS = 80


@pytest.mark.any_helm
def test_a_cronjob_makes_a_job_with_the_time_in_its_name(release: Release) -> None:
    release.install(schedules=[OFTEN, NIGHT])
    made = {one["metadata"]["name"]: one["spec"] for one in release.items("cronjobs")}
    assert {name: (spec["schedule"], spec["timeZone"]) for name, spec in made.items()} == {
        "mc-often": ("* * * * *", "Etc/UTC"),
        "mc-night": ("30 2 * * mon-fri", "Europe/Berlin"),
    }

    def jobs() -> list[dict[str, Any]]:
        return [one for one in release.items("jobs") if one["metadata"]["name"] != "mc"]

    job = until(jobs, MINUTE_SECONDS, "the first Job")[0]
    name, metadata = job["metadata"]["name"], job["metadata"]
    due = datetime.fromisoformat(metadata["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"])
    # scheduled_run.py knows the run by it
    assert name == f"mc-often-{int(due.timestamp()) // 60}"
    pod = until(lambda: release.items("pods", f"--selector=batch.kubernetes.io/job-name={name}"), 30, "its pod")[0]
    labels = pod["metadata"]["labels"]
    assert labels["batch.kubernetes.io/controller-uid"] == metadata["uid"]
    assert pod["spec"]["serviceAccountName"] == "mc-schedules"
    # the MiniCluster's own pods stay, and an upgrade takes the schedules away
    before = release.live_pods()[0]["metadata"]["uid"]
    release.upgrade(schedules=[])
    until(
        lambda: (
            not jobs()
            and not release.items("cronjobs,roles,serviceaccounts", "--selector=app.kubernetes.io/instance=mc")
        ),
        30,
    )
    assert release.live_pods()[0]["metadata"]["uid"] == before
    release.upgrade(schedules=[{**NIGHT, "timeZone": "Asia/Tokyo"}])
    assert release.get("cronjob", "mc-night")["spec"]["timeZone"] == "Asia/Tokyo"
