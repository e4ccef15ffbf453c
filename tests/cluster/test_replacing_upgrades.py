"""`helm upgrade` and `helm rollback` with `upgrade.replace`: Jobs that both Helms really delete and make anew."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hook_pods import HookPods, playing

from tools.releases import Release

VALUES: dict[str, Any] = {
    "size": 2,
    "interactive": True,
    "upgrade": {"replace": True},
    "archive": {"path": "/data/state.tgz"},
    "containers": [{"image": "ubuntu:jammy", "volumes": {"data": {"path": "/data", "emptyDir": True}}}],
}
NEW = [{"image": "ubuntu:noble", "volumes": {"data": {"path": "/data", "emptyDir": True}}}]
FATE = (
    ": their jobs had the pods' 30 s to end, what still ran was cancelled, unless marked to run again; jobs that wait "
    "stay in the queue"
)
GONE, QUORUM = f"the Jobs mc and their pods are gone{FATE}", "mc has its quorum"
HOOKS = {"serviceaccounts", "roles", "rolebindings"}


@pytest.fixture
def hooks(release: Release, tmp_path: Path) -> Iterator[HookPods]:
    """The hook pods of a release that is installed."""
    with playing(release, tmp_path) as pods:
        yield pods


def kept(release: Release) -> list[str]:
    """Return the UIDs of what must stay."""
    found = [release.get("secret", "mc-curve"), release.get("service"), release.get("configmap", "mc-config")]
    return [each["metadata"]["uid"] for each in found]


def job(release: Release, name: str = "mc") -> tuple[str, str]:
    """Return the Job's UID and the image of its runner."""
    found = release.get("job", name)
    return found["metadata"]["uid"], found["spec"]["template"]["spec"]["containers"][0]["image"]


def most(release: Release) -> str:
    """Return the setting of maxSize."""
    lines: list[str] = release.get("configmap", "mc-config")["data"]["settings.sh"].splitlines()
    return next(line for line in lines if line.startswith("mc_max_size="))


def on_failure(release: Release) -> str:
    return "--atomic" if release.helm.name == "helm3" else "--rollback-on-failure"


def test_an_upgrade_and_a_rollback_make_the_job_anew(release: Release, hooks: HookPods) -> None:
    release.install(**VALUES)
    release.running(2)
    before, certificate, (uid, _) = kept(release), release.certificate(), job(release)
    assert hooks.said == []
    release.upgrade(containers=NEW, maxSize=4)
    release.running(2)
    new, image = job(release)
    assert (image, new != uid, most(release)) == ("ubuntu:noble", True, "mc_max_size=4")
    assert (kept(release), release.certificate()) == (before, certificate)
    assert hooks.said == [GONE, QUORUM]
    # what a live Job takes replaces nothing, and starts no pod
    release.upgrade(size=3)
    release.running(3)
    assert (job(release)[0], len(hooks.said)) == (new, 2)
    # the Job keeps its maxSize, though the values have none
    del release.values["maxSize"]
    release.upgrade(pod={"terminationGracePeriodSeconds": 31})
    release.running(3)
    assert (job(release)[0] != new, most(release)) == (True, "mc_max_size=4")
    release.ok("rollback", 1)
    release.running(2)
    assert (job(release)[1], most(release)) == ("ubuntu:jammy", "mc_max_size=2")
    assert (kept(release), release.certificate()) == (before, certificate)
    # the grace period is that of the pods that go
    assert hooks.said[2:] == [GONE, QUORUM, GONE.replace("30 s", "31 s")]
    assert {kind for kind in HOOKS for each in release.items(kind) if each["metadata"]["name"] == "mc-replace"} == set()


def test_an_interrupted_upgrade_is_completed_by_the_same_one(release: Release, hooks: HookPods) -> None:
    release.install(**VALUES)
    release.running(2)
    before, remove = kept(release), hooks.program.remove

    def stop_at_deletion(jobs: Any, wanted: Any, _own: str) -> str:
        for name in wanted:
            jobs.delete(name, jobs.get(name))
        raise InterruptedError("deletion")

    def stop_when_gone(jobs: Any, wanted: Any, own: str) -> str:
        remove(jobs, wanted, own)
        raise InterruptedError("gone")

    for stop in (stop_at_deletion, stop_when_gone):
        hooks.program.__dict__["remove"] = stop
        assert "pre-upgrade" in release.refuse(containers=NEW, maxSize=4)
    hooks.program.__dict__["remove"] = remove
    release.upgrade(containers=NEW, maxSize=4)
    release.running(2)
    assert (job(release)[1], most(release), kept(release)) == ("ubuntu:noble", "mc_max_size=4", before)
    assert hooks.said[:2] == ["deletion", "gone"]
    assert hooks.said[2] in ("no Job is there", GONE)
    assert hooks.said[3:] == [QUORUM]


def test_a_template_that_can_not_start_is_rolled_back(release: Release, hooks: HookPods) -> None:
    release.install(**VALUES)
    release.running(2)
    before = kept(release)
    hooks.program.__dict__["START"] = 3.0
    nowhere = {"template": {"spec": {"nodeSelector": {"no": "such-node"}}}}
    said = release.refuse(on_failure(release), containers=NEW, pod=nowhere)
    assert "post-upgrade" in said
    release.running(2)
    assert (job(release)[1], kept(release)) == ("ubuntu:jammy", before)
    assert hooks.said == [GONE, "mc has no quorum after 3 s", GONE]
    assert release.revisions()[-1] == (3, "deployed")


@pytest.mark.any_helm
def test_what_would_lose_the_queue_or_run_work_again_is_refused(release: Release, hooks: HookPods) -> None:
    release.install(**VALUES)
    release.running(2)
    uid, _ = job(release)
    for values, message in (
        (
            {"archive": {"path": "/data/x"}},
            "archive.path is /data/state.tgz, asked is /data/x: upgrade.replace would lo",
        ),
        ({"state": {"claimName": "c"}}, "state.claimName is , asked is c: upgrade.replace would lose the queue of mc"),
        ({"archive": {"path": ""}}, "archive.path is /data/state.tgz, asked is : upgrade.replace would lose the queue"),
        ({"cleanup": True}, "upgrade.replace and cleanup are true"),
        ({"nameOverride": "other"}, "nameOverride can't change on the live MiniCluster mc"),
        (
            {"upgrade": {"replace": False}, "containers": NEW},
            "containers[0].image can't change on the live MiniCluster",
        ),
    ):
        assert message in release.refuse(**values)
    assert (job(release)[0], hooks.said) == (uid, [])
    for index in (1, 0):
        release.cluster.end_pod(release.namespace, release.pod(index), 0)
    release.condition("Complete")
    assert "the work of mc has ended, and upgrade.replace would run it again" in release.refuse(containers=NEW)


@pytest.mark.any_helm
def test_no_kept_queue_is_refused_at_the_install(release: Release) -> None:
    said = release.refuse(command="install", size=1, interactive=True, upgrade={"replace": True})
    assert "upgrade.replace is true and no queue is kept, so an upgrade would lose it: set state.claimName" in said


@pytest.mark.any_helm
def test_the_jobs_of_groups_are_made_anew_with_the_cluster_s_own(release: Release, hooks: HookPods) -> None:
    groups = [{"name": "a", "cores": 1}, {"name": "b", "cores": 1}]
    release.install(**{**VALUES, "upgrade": {"replace": False}}, groups=groups)
    release.running(2)
    jobs = ("mc", "mc-a", "mc-b")
    uids = [job(release, name)[0] for name in jobs]
    # the upgrade that needs the value may turn it on
    release.upgrade(upgrade={"replace": True}, groups=[{**groups[0], "image": "ubuntu:plucky"}, groups[1]])
    assert [job(release, name)[1] for name in jobs] == ["ubuntu:jammy", "ubuntu:plucky", "ubuntu:jammy"]
    new = [job(release, name)[0] for name in jobs]
    assert not set(uids) & set(new)
    release.upgrade(groups=groups[:1], autoscaling={"enabled": True}, maxSize=4)
    pod = release.get("job", "mc")["spec"]["template"]["spec"]
    assert "minicluster-agent" in [container["name"] for container in pod["initContainers"]]
    assert job(release, "mc-a")[1] == "ubuntu:jammy"
    assert ("Job", "mc-b") not in release.objects()
    assert hooks.said == [f"the Jobs mc, mc-a, mc-b and their pods are gone{FATE}", QUORUM] * 2
