"""A release of an older version is upgraded with the chart and the post-renderer of this one, and of a later one.

`older/` has the chart and the plugin of versions that releases are live of: `git archive` of a commit.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import versions
import warm
from minicluster.release.helm import version
from support import CHART, ROOT, Helm, lines_with
from versions import (
    OLDER,
    SIZED,
    VALUES,
    State,
    Version,
    mounted,
    programs,
    services_pods,
    sized,
    umbrella,
    use,
)

from tools.releases import Release

pytestmark = pytest.mark.without(
    *("labels", "limits", "quota", "security"),
    why="0.1.0 gives the services' pod neither labels nor a context, and has no value for the resources of hooks",
)

SCALED = {"autoscaling": {"enabled": True, "idleSeconds": 7}, "metrics": {"enabled": True}}
MODES = ("--reuse-values", "--reset-then-reuse-values")


@pytest.fixture(scope="module", params=OLDER, ids=lambda path: path.name.partition(".")[0])
def older(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Version:
    """An older version."""
    return versions.older(request.param, tmp_path_factory.mktemp("older"))


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Version:
    """A later version: other pods, other programs and new values."""
    root = tmp_path_factory.mktemp("later")
    shutil.copytree(ROOT / "plugin", root / "plugin", symlinks=True)
    shutil.copytree(CHART, root / "charts" / "minicluster")

    def change(file: str, old: str, new: str) -> None:
        path = root / file
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{file} has no {old!r}"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    chart, templates = "charts/minicluster", "charts/minicluster/templates"
    change(f"{templates}/broker/_container.tpl", "entrypoint.sh]", "other.sh]")
    change(f"{templates}/common/_place.tpl", "enableServiceLinks: false", "enableServiceLinks: true")
    change(f"{templates}/broker/_job.tpl", "values: [85, 137, 255]", "values: [85]")
    change(f"{templates}/services/deployment.yaml", "replicas: 1\n", "replicas: 1\n  revisionHistoryLimit: 3\n")
    change(f"{chart}/Chart.yaml", f"\nversion: {version()}\n", "\nversion: 9.8.7\n")
    change(f"{chart}/values.yaml", "  logLevel: null ", "  novelty: calm\n  logLevel: null ")
    change(f"{chart}/files/defaults.json", '"logLevel": null,', '"logLevel": null, "novelty": "calm",')
    change(f"{chart}/values.schema.json", '"logLevel":', '"novelty": {"type": "string"}, "logLevel":')
    change(f"{chart}/values.yaml", "connectTimeout: 5s", "connectTimeout: 7s")
    change(f"{chart}/files/defaults.json", '"connectTimeout": "5s"', '"connectTimeout": "7s"')
    change(f"{chart}/files/constants.json", '"formerDefaults": {', '"formerDefaults": {"flux.connectTimeout": "5s",')
    # the later version refuses a value that live releases have
    refusal = "yield 'flux.optionFlags is -o verbose=9: no more'"
    no_more = f"if cluster.flux['optionFlags'] == '-o verbose=9':\n        {refusal}\n    if"
    own = 'view["disable"] and'
    change("plugin/minicluster/render/refusals/flux.py", f"if {own}", f"{no_more} {own}")
    change("plugin/minicluster/pod/leave/leave.py", "def main(", "def other(")
    change("plugin/minicluster/render/settings.py", '"mc_quiet"', '"mc_silent"')
    change("plugin/minicluster/render/broker.py", '"tbon.topo"', '"tbon.tree"')
    change("plugin/minicluster/render/settings.py", "in POLICY.items()}", 'in POLICY.items()} | {"lazy": 0}')
    (root / "plugin/minicluster/pod/start/new.sh").write_text("#!/bin/sh\n")
    (root / "bin").symlink_to(warm.folder(root / "plugin"))
    return Version(root)


@pytest.fixture
def now() -> Version:
    """The version of the working tree."""
    return Version(ROOT)


@pytest.fixture
def installed(release: Release, older: Version, connected: Helm) -> Iterator[Callable[..., Release]]:
    """Install a release of an older version, without values for the upgrades that follow."""

    def install(**values: Any) -> Release:
        release.helm, release.chart = older.helm(connected), older.chart
        release.install(**VALUES, **values)
        release.values = {}
        return release

    return install


@pytest.mark.parametrize(("which", "mode"), [("now", MODES[0]), ("later", MODES[1])])
def test_an_upgrade_with_another_version_restarts_nothing(
    installed: Callable[..., Release], connected: Helm, request: pytest.FixtureRequest, mode: str, which: str
) -> None:
    release = installed()
    before = State.of(release, 2)
    use(release, request.getfixturevalue(which), connected)
    for size in (4, 1):
        done = release.run("upgrade", mode, "--set", f"size={size}")
        assert done.code == 0, done.both
        files = before.stays(release, size)
        assert files["settings.sh"] == sized(before.files["settings.sh"], 2, size)
        assert json.loads(files["agent.json"]) == {**json.loads(before.files["agent.json"]), "size": size}
    assert "Its pods stay as version 0.1.0 created them." in done.out
    shrunk = State.of(release, 1)
    release.ok("rollback", "1")
    assert shrunk.stays(release, 2) == {file: before.files[file] for file in SIZED}


def test_an_upgrade_changes_the_policy_of_an_older_autoscaler(
    installed: Callable[..., Release], connected: Helm, later: Version
) -> None:
    release = installed(**SCALED)
    before = State.of(release, 2)
    settings = json.loads(before.files["agent.json"])
    use(release, later, connected)
    for asked, policy, size in (
        ({"min": 2, "maxStepUp": 1}, {"min": 2, "step_up": 1}, 2),
        ({"enabled": False}, None, 3),
        ({"enabled": True, "min": 1}, {"min": 1, "step_up": 1}, 3),
    ):
        done = release.run("upgrade", MODES[0], values={"autoscaling": asked, "size": 3})
        assert done.code == 0, done.both
        found = json.loads(before.stays(release, size)["agent.json"])
        assert found == {**settings, "size": 3, "policy": policy and {**settings["policy"], **policy}}


@pytest.mark.any_helm
@pytest.mark.parametrize("mode", MODES)
def test_a_value_that_the_live_version_lacks_is_refused(
    installed: Callable[..., Release], connected: Helm, later: Version, mode: str
) -> None:
    release = installed()
    before = State.of(release, 2)
    use(release, later, connected)
    text = release.refuse(mode, flux={"novelty": "loud"})
    way = "it is calm, asked is loud; uninstall mc first, which loses its queue, or install under another name"
    assert len(lines_with(text, f"flux.novelty can't change on the live MiniCluster mc: {way}")) == 1
    assert lines_with(release.refuse(mode, flux={"connectTimeout": "6s"}), "it is 5s, asked is 6s")
    # the default is what the cluster has
    assert release.run("upgrade", mode, values={"flux": {"novelty": "calm"}}).code == 0
    before.stays(release, 2)
    # also when the value is in the release
    assert lines_with(release.refuse(mode, flux={"novelty": "loud"}), "flux.novelty can't change")


@pytest.mark.any_helm
def test_evictions_of_an_older_cluster_stay_as_they_are(
    installed: Callable[..., Release], connected: Helm, now: Version
) -> None:
    release = installed()
    before = State.of(release, 2)
    use(release, now, connected)
    for key, was in (("evictable", "(unset)"), ("disruptionBudget", "false")):
        text = release.refuse(MODES[0], pod={key: True})
        assert lines_with(text, f"pod.{key} can't change on the live MiniCluster mc: it is {was}, asked is true")
    assert release.run("upgrade", MODES[0], values={"pod": {"disruptionBudget": False}}).code == 0
    before.stays(release, 2)
    assert release.items("poddisruptionbudgets") == []


def test_changed_services_get_a_new_pod_and_a_job_made_anew_the_version_of_the_upgrade(
    installed: Callable[..., Release], connected: Helm, later: Version
) -> None:
    release = installed()
    before = State.of(release, 2)
    use(release, later, connected)
    new = {"name": "web", "image": "busybox", "command": "httpd -f"}
    assert release.run("upgrade", MODES[0], values={"services": [new]}).code == 0
    release.cluster.wait("another pod", lambda: len(found := services_pods(release)) == 1 and found != before.services)
    after = State.of(release, 2)
    assert (after.job, after.pods) == (before.job, before.pods)
    assert after.files["web.command"] == "httpd -f"
    assert after.files["side.command"] == "sleep inf"
    assert "db.command" not in after.files
    release.kubectl("delete", "job", "mc")
    assert lines_with(release.refuse(MODES[1]), "MiniCluster mc: flux.optionFlags is -o verbose=9: no more")
    assert release.run("upgrade", MODES[1], "--set", "flux.optionFlags=").code == 0
    after = State.of(release, 2)
    assert after.programs["mc-programs"]["new.sh"]
    assert "mc_silent=" in after.files["settings.sh"]
    assert after.spec["template"]["spec"]["enableServiceLinks"] is True
    assert json.loads(after.immutable)["flux.novelty"] == "calm"
    assert after.certificate == before.certificate
    # later upgrades keep the new version
    assert release.run("upgrade", MODES[0], "--set", "size=3").code == 0
    after.stays(release, 3)


def test_a_job_made_anew_does_not_run_the_programs_of_the_former_version(
    release: Release, connected: Helm, later: Version
) -> None:
    release.install(**VALUES)
    release.values = {}
    before = State.of(release, 2)
    use(release, later, connected)
    assert release.run("upgrade", MODES[1], "--set", "size=3").code == 0
    before.stays(release, 3)
    release.kubectl("delete", "job", "mc")
    assert release.run("upgrade", MODES[1], "--set", "flux.optionFlags=,size=2").code == 0
    after = State.of(release, 2)
    assert list(after.programs) == ["mc-programs-9.8.7"]
    assert after.programs["mc-programs-9.8.7"]["new.sh"]
    # later upgrades keep them
    assert release.run("upgrade", MODES[0], "--set", "size=3").code == 0
    after.stays(release, 3)


@pytest.mark.any_helm
def test_a_minicluster_that_another_version_adds_has_its_own_programs(
    release: Release, connected: Helm, later: Version, tmp_path: Path
) -> None:
    release.chart = umbrella(tmp_path / "one", CHART, 1)
    release.install()
    first = programs(release)
    assert list(first) == ["mc-programs"]
    use(release, later, connected)
    release.chart = umbrella(tmp_path / "two", later.chart, 3)
    release.upgrade()
    assert [mounted(release, f"mc{number}")[0] for number in range(3)] == [
        "mc-programs",
        "mc-programs-9.8.7",
        "mc-programs-9.8.7",
    ]
    both = programs(release)
    assert (both.keys(), both["mc-programs"]) == ({"mc-programs", "mc-programs-9.8.7"}, first["mc-programs"])
    assert both["mc-programs-9.8.7"]["new.sh"]
    for number in range(3):
        files = release.get("configmap", f"mc{number}-config")["data"]
        assert ("mc_silent=" in files["settings.sh"], "entrypoint.sh" in files) == (number > 0, False)
    release.ok("rollback", "1")
    assert programs(release) == first
    assert [one["metadata"]["name"] for one in release.items("jobs")] == ["mc0"]


@pytest.mark.any_helm
def test_a_minicluster_is_added_to_a_release_of_an_older_version(
    release: Release, connected: Helm, older: Version, now: Version, tmp_path: Path
) -> None:
    use(release, older, connected)
    release.chart = umbrella(tmp_path / "one", older.chart, 1)
    release.install()
    before = release.get("configmap", "mc0-config")["data"]
    use(release, now, connected)
    release.chart = umbrella(tmp_path / "two", CHART, 2)
    release.upgrade()
    assert [mounted(release, f"mc{number}") for number in range(2)] == [
        ["mc0-config"],
        ["mc-programs", "mc-programs-slurm", "mc1-config"],
    ]
    after = release.get("configmap", "mc0-config")["data"]
    assert {**after, "quorum.sh": ""} == {**before, "quorum.sh": ""}
    assert programs(release)["mc-programs"]["entrypoint.sh"]
    release.ok("rollback", "1")
    assert release.get("configmap", "mc0-config")["data"] == before
    assert programs(release) == {}


@pytest.mark.any_helm
def test_an_upgrade_is_refused_while_the_job_is_being_deleted(release: Release) -> None:
    release.install(size=1)
    uids = release.running(1)
    release.kubectl("patch", "job", "mc", "--type=merge", "--patch", '{"metadata":{"finalizers":["a.b/c"]}}')
    release.kubectl("delete", "job", "mc", "--wait=false")
    assert lines_with(release.refuse(), "the Job mc is being deleted: wait until it is gone, then upgrade again")
    release.kubectl("patch", "job", "mc", "--type=merge", "--patch", '{"metadata":{"finalizers":null}}')
    release.kubectl("wait", "--for=delete", "job/mc")
    release.upgrade()
    assert release.running(1) != uids
