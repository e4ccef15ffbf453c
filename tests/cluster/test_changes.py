"""The values that may change on a live MiniCluster, and those that may not."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from minicluster.release.helm import version
from quick import QuickCluster
from simulated import end, new_namespace
from support import CHART, Helm, deep, lines_with

from tools.releases import Release
from tools.tenant import PLAIN

Copy = Callable[..., Path]
CHANGE = {
    "size": 2,
    "maxSize": 4,
    "containers": [{"image": "ubuntu:noble", "command": "sleep inf", "environment": {"A": "b"}}],
}
WAY = "uninstall mc first, which loses its queue, or install under another name"


@pytest.fixture(scope="module")
def live(connected: Helm, cluster: QuickCluster) -> Release:
    """Return a release that no test changes; its values are just those that tests change."""
    namespace = new_namespace(cluster, PLAIN)
    release = Release(connected, cluster, namespace)
    release.install(**CHANGE)
    release.running(2)
    return release


def runner(**fields: Any) -> dict[str, Any]:
    return {"containers": [{**CHANGE["containers"][0], **fields}]}  # type: ignore[index]


#: One of each kind of change. That each field is recorded: tests/chart/test_each_field.py; the words of each refusal:
#: tests/unit/render/test_upgrade.py.
REFUSED: list[Any] = [
    ({"tasks": 2}, "tasks", "1", f"2; {WAY}"),
    ({"interactive": True, **runner(command="")}, "containers[0].command", "sleep inf", "(unset)"),
    (runner(command=["sleep", "inf"]), "containers[0].command", "sleep inf", '["sleep", "inf"]'),
    (runner(command="x" * 65), "containers[0].command", "sleep inf", "sha256:"),
    (runner(environment={}), "containers[0].environment.A", "b", "(unset)"),
    (runner(resources={"limits": {"cpu": 1}}), "containers[0].resources.limits.cpu", "(unset)", "1"),
    # for a map or a list, the message names one of its values
    ({"pod": {"template": {"spec": {"hostname": "x"}}}}, "pod.template", "(unset)", "x"),
    ({"flux": {"container": {"mode": "copy"}}}, "flux.container.mode", "image", "copy"),
]


@pytest.mark.any_helm
def test_a_value_that_can_not_change_is_refused_by_name(live: Release) -> None:
    before = live.objects()
    for values, path, was, asked in REFUSED:
        text = live.refuse(**deep(CHANGE, values))
        lines = lines_with(text.replace("\\n", "\n"), "can't change on the live MiniCluster mc")
        assert len(lines) == 1, text
        assert path in lines[0]
        assert f"it is {was}" in lines[0]
        assert f"asked is {asked}" in lines[0]
    assert live.objects() == before
    assert live.revisions() == [(1, "deployed")]


@pytest.mark.any_helm
@pytest.mark.parametrize("environment", [{"A": "b", "B": ""}, {"A": "b", "B": "false"}], ids=["empty", "false"])
def test_a_new_variable_is_refused_by_name(live: Release, environment: dict[str, str]) -> None:
    text = live.refuse("--dry-run=server", **runner(environment=environment))
    assert lines_with(text, "containers[0].environment.B can't change")


@pytest.mark.any_helm
def test_the_refusal_of_a_change_shows_true_and_false(live: Release) -> None:
    assert lines_with(live.refuse(logging={"strict": False}), "it is true, asked is false")


@pytest.mark.any_helm
def test_a_change_of_name_override_is_refused(live: Release) -> None:
    assert lines_with(live.refuse("--dry-run=server", nameOverride="other"), "nameOverride can't change")


def test_values_that_may_change_do_so_without_a_restart(release: Release) -> None:
    release.install(**CHANGE, backoffLimit=7)
    uids = release.running(2)
    template = release.get("job")["spec"]["template"]
    release.upgrade(deadlineSeconds=1000, jobLabels={"a": "b"}, cleanup=True, minSize=1, backoffLimit=9)
    job = release.get("job")
    assert job["spec"]["activeDeadlineSeconds"] == 1000
    assert job["spec"]["ttlSecondsAfterFinished"] == 0
    assert job["spec"]["backoffLimit"] == 9
    assert job["metadata"]["labels"]["a"] == "b"
    assert "-Sbroker.quorum=1 " in release.get("configmap", "mc-config")["data"]["settings.sh"]
    assert job["spec"]["template"] == template
    assert release.running(2) == uids


@pytest.mark.without("labels", "security", why="a list of the values replaces that of the command line")
def test_numbers_of_the_command_line_do_not_count_as_changed_at_an_upgrade(release: Release) -> None:
    release.install("--set", "containers[0].securityContext.runAsUser=1000660000,maxSize=4", size=1)
    uids = release.running(1)
    done = release.run("upgrade", "--reuse-values", "--set", "size=2")
    assert done.code == 0, done.err
    assert release.running(2)[0] == uids[0]


@pytest.mark.any_helm
def test_an_upgrade_to_another_version_with_a_new_value_restarts_nothing(release: Release, copy_of_chart: Copy) -> None:
    another = {f"version: {version()}": "version: 9.8.7"}
    release.chart = copy_of_chart({"Chart.yaml": another, "values.yaml": {"  connectTimeout: 5s ": "  # "}})
    release.install(**CHANGE)
    uids = release.running(2)
    spec = release.get("job")["spec"]
    release.chart = CHART
    release.upgrade()
    job = release.get("job")
    assert job["metadata"]["labels"]["helm.sh/chart"] == f"minicluster-{version()}"
    assert job["spec"] == spec
    assert release.running(2) == uids


OLDER = {
    "templates/common/_version.tpl": {'"1.36"': '"1.99"', '"1.31"': '"1.99"', '"1.29"': '"1.99"'},
}


@pytest.mark.any_helm
def test_an_upgrade_keeps_the_job_fields_and_view_mode_of_the_install(release: Release, copy_of_chart: Copy) -> None:
    release.chart = copy_of_chart(OLDER)
    release.install(**CHANGE)
    uids = release.running(2)
    spec = release.get("job")["spec"]
    assert "successPolicy" not in spec
    assert [c["name"] for c in spec["template"]["spec"]["initContainers"]] == ["flux-view"]
    # now the cluster is upgraded
    release.chart = CHART
    release.upgrade(size=3)
    assert {**release.get("job")["spec"], "completions": 2, "parallelism": 2} == spec
    grown = release.running(3)
    assert {index: grown[index] for index in uids} == uids


@pytest.mark.any_helm
def test_an_upgrade_keeps_the_view_mode_when_its_value_is_dropped(release: Release) -> None:
    release.install(size=1, flux={"container": {"mode": "copy"}})
    uids = release.running(1)
    release.values = {}
    release.upgrade()
    assert release.running(1) == uids
    immutable = json.loads(release.get("job")["metadata"]["annotations"]["minicluster/immutable"])
    assert immutable["flux.container.mode"] == "copy"


@pytest.mark.any_helm
def test_an_upgrade_after_the_job_was_deleted_may_change_any_value(release: Release) -> None:
    release.install(**CHANGE)
    release.running(2)
    certificate = release.certificate()
    release.kubectl("delete", "job", "mc")
    release.upgrade(**runner(command="sleep 2"), maxSize=6)
    release.running(2)
    assert release.certificate() == certificate
    assert release.get("configmap", "mc-config")["data"]["command"] == "sleep 2"


@pytest.mark.any_helm
def test_an_upgrade_does_not_rerun_work_that_was_cleaned_up(release: Release) -> None:
    release.install(**CHANGE, cleanup=True)
    release.running(2)
    end(release, 0, 0)
    release.cluster.wait("no Job", lambda: not release.items("jobs"))
    message = (
        "the Job of mc has ended and was cleaned up, and an upgrade would run its work again: uninstall mc first, or "
        "set cleanup to false"
    )
    assert lines_with(release.refuse(), message)
    assert release.items("jobs") == []
    release.upgrade(cleanup=False)
    release.running(2)


@pytest.mark.any_helm
def test_two_releases_in_a_namespace_are_independent(release: Release) -> None:
    release.install(size=1)
    other = dataclasses.replace(release, name="other", values={})
    other.install(size=1)
    assert other.certificate() != release.certificate()
    selectors = [one.get("service")["spec"]["selector"] for one in (release, other)]
    assert selectors[0] != selectors[1]
    other.ok("uninstall", "--wait")
    release.running(1)
