"""The CronJobs of schedules, and what their pods may do and are told."""

import json
from typing import Any

import pytest
from support import Helm, by_name, one

RUN: dict[str, Any] = {
    "name": "night",
    "cron": "0 2 * * *",
    "command": ["echo", "$(HOME) 'a' \"b\" `id`", ""],
    "options": ["-N2", "--queue=night"],
}
OTHER = {"name": "hours", "cron": "@hourly", "timeZone": "Europe/Berlin", "command": ["x"]}
OTHER["startingDeadlineSeconds"] = 60
SCHEDULES = {"schedules": [RUN, OTHER]}
KINDS = ("ConfigMap", "Role", "RoleBinding", "ServiceAccount")


def names(text: str) -> set[tuple[str, str]]:
    return {(kind, name) for kind, name in by_name(text) if "schedule" in name or kind == "CronJob"}


def test_there_is_a_cronjob_for_each_schedule_and_nothing_without_one(helm: Helm) -> None:
    assert names(helm.template(release="mc")) == set()
    assert "schedules" not in json.dumps(one(helm.template(release="mc"), "Job"))
    found = helm.template(values=SCHEDULES, release="mc")
    assert names(found) == {
        *((kind, "mc-schedules") for kind in KINDS),
        ("CronJob", "mc-night"),
        ("CronJob", "mc-hours"),
    }


def test_a_run_that_was_missed_is_made_up_for_and_none_is_beside_another(helm4: Helm) -> None:
    found = by_name(helm4.template(values=SCHEDULES, release="mc"))
    rest = {"concurrencyPolicy": "Forbid", "successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 1}
    times = {
        "mc-night": {"schedule": "0 2 * * *", "timeZone": "Etc/UTC", "startingDeadlineSeconds": 43200},
        "mc-hours": {"schedule": "@hourly", "timeZone": "Europe/Berlin", "startingDeadlineSeconds": 60},
    }
    for name, expected in times.items():
        spec = found["CronJob", name]["spec"]
        assert {key: spec[key] for key in spec if key != "jobTemplate"} == {**rest, **expected}
    note = found["Job", "mc"]["metadata"]["annotations"]["minicluster/schedules"]
    assert json.loads(note) == [
        {"name": "night", "cron": "0 2 * * *", "timeZone": "Etc/UTC"},
        {"name": "hours", "cron": "@hourly", "timeZone": "Europe/Berlin"},
    ]


def test_the_words_of_a_job_are_data(helm: Helm) -> None:
    found = by_name(helm.template(values=SCHEDULES, release="mc"))
    told = found["ConfigMap", "mc-schedules"]["data"]
    assert sorted(told) == ["replace_server.py", "scheduled_run.py", "scheduled_submit.py", "schedules.json"]
    assert json.loads(told["schedules.json"]) == {
        "name": "mc",
        "schedules": {
            "night": {"command": RUN["command"], "options": RUN["options"]},
            "hours": {"command": ["x"], "options": []},
        },
    }


def test_the_account_may_wake_one_job_and_run_commands_in_pods(helm4: Helm) -> None:
    groups = {"groups": [{"name": "gpu"}]}
    rules = one(helm4.template(values={**SCHEDULES, **groups}, release="mc"), "Role")["rules"]
    assert rules == [
        {"apiGroups": ["batch"], "resources": ["jobs"], "resourceNames": ["mc"], "verbs": ["get", "patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create", "get"]},
    ]


@pytest.mark.parametrize(
    ("container", "image", "flux", "volumes"),
    [
        ({"image": "v:1", "mode": "image"}, "app:1", "/opt/views/view/bin/flux", ["config", "view"]),
        ({"image": "v:1", "mode": "copy"}, "v:1", "/opt/views/view/bin/flux", ["config"]),
        ({"disable": True}, "app:1", "flux", ["config"]),
    ],
)
def test_the_pod_has_the_python_of_the_view_and_a_place_as_the_others(
    helm4: Helm, container: dict[str, Any], image: str, flux: str, volumes: list[str]
) -> None:
    pod = {"nodeSelector": {"a": "b"}, "labels": {"team": "x"}, "securityContext": {"runAsUser": 7}}
    runner = {"image": "app:1", "securityContext": {"privileged": True, "readOnlyRootFilesystem": True}}
    values = {"schedules": [RUN], "flux": {"container": container}, "pod": pod, "containers": [runner]}
    template = one(helm4.template(values=values, release="mc"), "CronJob")["spec"]["jobTemplate"]["spec"]["template"]
    own = {"app.kubernetes.io/instance": "mc", "app.kubernetes.io/name": "minicluster"}
    assert template["metadata"]["labels"] == {**own, "app.kubernetes.io/component": "schedule", "team": "x"}
    spec = template["spec"]
    [made] = spec["containers"]
    assert (made["image"], made["command"]) == (
        image,
        [flux, "python", "/minicluster/scheduled_run.py", "/minicluster/schedules.json", "night"],
    )
    assert [volume["name"] for volume in spec["volumes"]] == volumes
    assert made["securityContext"] == {"readOnlyRootFilesystem": True}
    assert (spec["nodeSelector"], spec["securityContext"], spec["serviceAccountName"]) == (
        {"a": "b"},
        {"runAsUser": 7},
        "mc-schedules",
    )
