"""Scale to zero on a real API server: the agent suspends the Job, commands and the SDK wake it, upgrades do neither."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from autoscaled import agent, change, size
from kube import KubeError
from minicluster.sdk import MiniCluster, WaitTimeoutError
from quick import take_environment
from support import Helm
from suspend import IDLE, SUSPENDED

from tools.clients import Done, run
from tools.releases import Release
from tools.testbed import bind

SCALING: dict[str, Any] = {"enabled": True, "suspendAfterSeconds": 60}
SLEEPS = {"size": 2, "maxSize": 4, "autoscaling": SCALING, "state": {"claimName": "state"}}
WHY = f"{IDLE}60 s"
WAKES = f"minicluster: mc is suspended, {WHY}: waking it"


@pytest.fixture
def minicluster(connected: Helm, release: Release) -> Callable[..., Done]:
    """Runs `minicluster` in the release's namespace, with each Helm."""
    environment = connected.environment | {"HELM_BIN": connected.name}
    return lambda *words: run("minicluster", words[0], "-n", release.namespace, *words[1:], env=environment)


@pytest.fixture
def asleep(release: Release, tmp_path: Path) -> Iterator[Release]:
    """A release that its agent has suspended."""
    release.install(**SLEEPS)
    volume = f"{release.namespace}-state"
    bind(release, "state", volume, Path("/none"))
    release.running(2)
    sleep(release, tmp_path)
    yield release
    release.cluster.kubectl("delete", "persistentvolume", volume, "--wait=false")


def sleep(release: Release, folder: Path) -> None:
    pod = agent(release, folder)
    change(pod, lambda job: pod.suspend(job, 1, {SUSPENDED: WHY}))
    release.cluster.wait("the end of the pods", lambda: not release.pods())


def state(release: Release) -> tuple[bool, str, int]:
    """Return whether the Job is suspended, why, and its size."""
    job = release.get("job")
    return job["spec"].get("suspend", False), job["metadata"]["annotations"].get(SUSPENDED, ""), size(release)


def owners(release: Release) -> set[str]:
    """Return the field managers that own `suspend`."""
    text = release.kubectl("get", "job", "mc", "--show-managed-fields", "--output=json")
    entries = json.loads(text)["metadata"]["managedFields"]
    return {entry["manager"] for entry in entries if "f:suspend" in entry["fieldsV1"].get("f:spec", {})}


def test_an_upgrade_does_not_wake_a_sleeping_cluster(asleep: Release, minicluster: Callable[..., Done]) -> None:
    assert state(asleep) == (True, WHY, 1)
    assert owners(asleep) == set()
    asleep.upgrade(autoscaling={**SCALING, "idleSeconds": 30}, jobLabels={"a": "b"}, size=3)
    assert (state(asleep), asleep.pods()) == ((True, WHY, 1), [])
    # also when the upgrade turns off the autoscaling that suspended it
    asleep.upgrade(autoscaling={"enabled": False}, size=3)
    assert (state(asleep), asleep.pods()) == ((True, WHY, 3), [])
    assert minicluster("wait", "mc", "--timeout", "60s").err.splitlines()[0] == WAKES
    asleep.running(3)
    assert (state(asleep), owners(asleep)) == ((False, "", 3), set())


def test_the_value_suspend_keeps_a_cluster_suspended_until_the_user_resumes(
    asleep: Release, minicluster: Callable[..., Done], tmp_path: Path
) -> None:
    assert minicluster("wait", "mc", "--timeout", "60s").code == 0
    # no client owns the fields that a command has changed
    asleep.upgrade(suspend=True)
    assert state(asleep) == (True, "the value suspend", 1)
    refused = minicluster("flux", "mc", "--", "jobs")
    assert refused.code == 1
    assert "mc is Suspended: by the value suspend: an upgrade with suspend=false resumes it" in refused.err
    asleep.upgrade(suspend=False)
    asleep.running(1)
    # by both: the user's word counts
    sleep(asleep, tmp_path)
    asleep.upgrade(suspend=True)
    assert state(asleep) == (True, "the value suspend", 1)
    asleep.upgrade(suspend=False)
    asleep.running(1)
    assert state(asleep) == (False, "", 1)


@pytest.mark.any_helm
def test_two_commands_can_wake_a_cluster_at_the_same_time(asleep: Release, minicluster: Callable[..., Done]) -> None:
    done: list[Done] = []
    threads = [
        threading.Thread(target=lambda: done.append(minicluster("wait", "mc", "--timeout", "60s"))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert [one.code for one in done] == [0, 0]
    assert len(asleep.running(1)) == 1
    assert (state(asleep), owners(asleep)) == ((False, "", 1), set())


@pytest.mark.any_helm
def test_the_agent_does_not_resume_a_job_that_changed_after_it_looked(asleep: Release, tmp_path: Path) -> None:
    """The agent changes a Job only if it is as the agent has read it."""
    pod = agent(asleep, tmp_path)
    before = pod.get_job()
    asleep.upgrade(jobLabels={"c": "d"})
    with pytest.raises(KubeError, match="the object has been modified"):
        pod.resume(before, {SUSPENDED: None})
    assert state(asleep) == (True, WHY, 1)
    pod.resume(pod.get_job(), {SUSPENDED: None})
    asleep.running(1)
    assert (state(asleep), owners(asleep)) == ((False, "", 1), set())


@pytest.mark.any_helm
def test_the_sdk_wakes_a_sleeping_cluster(asleep: Release, connected: Helm, monkeypatch: pytest.MonkeyPatch) -> None:
    take_environment(monkeypatch, connected)
    cluster = MiniCluster.connect("mc", asleep.namespace)
    assert cluster.status()["state"] == "Suspended"
    with pytest.raises(WaitTimeoutError):
        cluster.wait("end", timeout=1)
    assert state(asleep) == (True, WHY, 1)
    assert cluster.wait("quorum", timeout=60) is None
    assert (state(asleep), owners(asleep)) == ((False, "", 1), set())
    cluster.close()
