"""The SDK on a real API server: releases, sizes, states and ends. In its pods nothing runs, so no job does."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest
from minicluster.sdk import (
    ApiError,
    ArgumentError,
    ClosedError,
    EndedError,
    MiniCluster,
    NotFoundError,
    ReleaseError,
    WaitTimeoutError,
)
from quick import QuickCluster, take_environment
from simulated import end
from support import Helm

from tools import tenant
from tools.releases import Release


@pytest.fixture(autouse=True)
def _environment(connected: Helm, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a Python that uses the SDK, with each Helm."""
    take_environment(monkeypatch, connected)


@pytest.fixture
def made(
    cluster: QuickCluster, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[MiniCluster, Release]]:
    """A MiniCluster that the SDK made, and how the tests see it."""
    cluster.answer_reads(monkeypatch)
    values = {"size": 2, "containers": [{"image": "a", "environment": {"E": "😀"}}]}
    file = tmp_path / "values.json"
    file.write_text('{"maxSize": 4, "interactive": true}')
    options: Any = {"files": [str(file)], "sets": ["maxSize=3"], "wait": True}
    every = tenant.values(values, release.world)
    with MiniCluster.create(release.name, release.namespace, every, **options) as mini:
        yield mini, release


def test_the_sdk_creates_scales_and_deletes_a_minicluster(made: tuple[MiniCluster, Release]) -> None:
    cluster, release = made
    assert (cluster.name, cluster.release, cluster.namespace) == ("mc", "mc", release.namespace)
    uids = release.running(2)
    container = release.get("job")["spec"]["template"]["spec"]["containers"][0]
    assert {"name": "E", "value": "😀"} in container["env"]
    cluster.scale(3)
    assert {index: uid for index, uid in release.running(3).items() if index < 2} == uids
    with pytest.raises(ReleaseError, match="the size 4 is above the maxSize of mc, 3: lower it"):
        cluster.scale(4)
    with pytest.raises(ArgumentError, match="size=0: give a whole number, 1 or more"):
        cluster.scale(0)
    with pytest.raises(ReleaseError, match=r"there is a release mc in namespace .* already"):
        MiniCluster.create(release.name, release.namespace)
    cluster.delete()
    assert release.items() == []
    with pytest.raises(NotFoundError, match="there is no MiniCluster mc in namespace"):
        MiniCluster.connect("mc", release.namespace)
    cluster.delete()


@pytest.mark.any_helm
def test_closing_an_sdk_connection_keeps_the_minicluster(made: tuple[MiniCluster, Release]) -> None:
    cluster, release = made
    release.running(2)
    with MiniCluster.connect(release.name, release.namespace) as other:
        job = other.submit("true")
        cancelled = other.submit("true")
        assert cancelled.cancel()
        other.close(timeout=0)
    with pytest.raises(ClosedError, match="mc was closed before this was over: Flux may not have this job"):
        job.result(10)
    with pytest.raises(CancelledError):
        cancelled.result(10)
    with pytest.raises(ClosedError):
        other.submit("true")
    assert cluster.status()["size"] == 2


@pytest.mark.any_helm
def test_the_sdk_finds_a_minicluster_by_its_name_and_its_release(release: Release) -> None:
    values = {"nameOverride": "other", "size": 1, "maxSize": 2}
    with pytest.raises(NotFoundError):
        MiniCluster.connect("mc", release.namespace)
    release.install(**values)
    cluster = MiniCluster.connect("mc", release.namespace)
    assert (cluster.name, cluster.release) == ("other", "mc")
    assert (MiniCluster.connect("other", release.namespace)).release == "mc"
    cluster.scale(2)
    assert release.get("job", "other")["spec"]["completions"] == 2
    cluster.delete()
    assert release.items() == []


@pytest.mark.any_helm
def test_the_sdk_status_is_the_document_of_the_command(made: tuple[MiniCluster, Release]) -> None:
    mini, release = made
    release.running(2)
    found = mini.status()
    assert {key: found[key] for key in ("name", "namespace", "size", "sizeFrom", "maxSize", "pods", "flux")} == {
        "name": "mc",
        "namespace": release.namespace,
        "size": 2,
        "sizeFrom": "job",
        "maxSize": 3,
        "pods": [{"ranks": "0-1", "reason": "Running"}],
        "flux": None,
    }
    # no kubelet answers
    assert found["state"] in ("Starting", "Unknown")
    assert "the lead's broker does not answer" in found["why"]
    json.dumps(found)


@pytest.mark.any_helm
def test_the_sdk_waits_for_the_quorum_and_the_exit_code(made: tuple[MiniCluster, Release]) -> None:
    cluster, release = made
    assert cluster.wait(timeout=30) is None
    with pytest.raises(WaitTimeoutError, match=r"gave up after 1 s"):
        cluster.wait("end", timeout=1)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(cluster.wait("end", 60)))
    thread.start()
    job = cluster.submit("true")
    end(release, 0, 3)
    thread.join(60)
    assert found == [3]
    assert cluster.wait() == 3
    with pytest.raises(EndedError, match=r"^mc has ended \(exit code 3\): Failed"):
        job.result(60)
    with pytest.raises(EndedError):
        cluster.flux("resource", "list")
    release.condition("Failed")
    assert cluster.status()["state"] == "Failed"


@pytest.mark.any_helm
def test_the_sdk_raises_ended_error_when_others_delete_the_minicluster(made: tuple[MiniCluster, Release]) -> None:
    cluster, release = made
    release.running(2)
    release.ok("uninstall")
    with pytest.raises(EndedError, match="Gone: the Job mc"):
        cluster.wait("end", 60)


@pytest.mark.any_helm
def test_the_sdk_names_the_right_that_the_user_lacks(
    user: Helm, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    release.install(size=1)
    monkeypatch.setenv("KUBECONFIG", user.environment["KUBECONFIG"])
    with pytest.raises(ApiError, match=r'^kubectl get pods: .*pods is forbidden: User "user"') as caught:
        MiniCluster.connect("mc", release.namespace)
    assert caught.value.status == 403
    with pytest.raises(ApiError, match=r"the kubeconfig can't be used: .*check KUBECONFIG and the context"):
        MiniCluster.connect("mc", release.namespace, context="nowhere")
