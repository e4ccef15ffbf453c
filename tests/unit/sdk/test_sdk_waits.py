"""The SDK waits with the reasons that the commands have, and for no answer longer than it may."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_kube import FakeChannel, FakeKube
from minicluster.lead import ask
from minicluster.release.oneshot import SingleJob
from minicluster.sdk import (
    ArgumentError,
    EndedError,
    FinishedJob,
    JobFuture,
    MiniCluster,
    Result,
    WaitTimeoutError,
    lead,
)
from minicluster.waiting import wait
from status_samples import RUNNING, STARTS, ended, job, pod, suspended, waiting, workload

from tools.clients import until

MOUNT = 'MountVolume.SetUp failed for volume "munge" : secret "munge-key" not found'
WHY = (
    f"the lead is Pending: ContainerCreating: {MOUNT}: create it in this namespace, or correct the value that names "
    "it: the pod then starts by itself"
)
HOME = [{"name": "mini", "env": [{"name": "MINICLUSTER_HOME", "value": "/mnt/flux"}]}]
INVOLVED = {"kind": "Pod", "name": "mini-0-x"}
EVENTS = [{"reason": "FailedMount", "message": MOUNT, "involvedObject": INVOLVED}]


def namespace(found: Any, state: Any = None, **has: Any) -> FakeKube:
    """Return a namespace with the MiniCluster mini."""
    pods = [{**pod(0, state, uid="u"), "spec": {"containers": HOME}}] if state else []
    log = {"mini-0-x": b"no input\nminicluster: the job failed with exit code 7\n"}
    return FakeKube(has={"job": found, "pods": pods, "events": EVENTS, **has}, logs=log)


def mini(kube: FakeKube) -> MiniCluster:
    return MiniCluster(kube, "mini", is_own=False)


def test_a_wait_of_the_sdk_that_gives_up_says_why() -> None:
    cluster = mini(namespace(job(), waiting("ContainerCreating")))
    for waits in (lambda: cluster.wait(timeout=0.1), lambda: cluster.flux("jobs", timeout=0.1)):
        with pytest.raises(WaitTimeoutError) as caught:
            waits()
        assert str(caught.value) == f"mini in namespace lab: gave up after 0.1 s: Starting: {WHY}"


def helm(monkeypatch: pytest.MonkeyPatch, kube: FakeKube) -> None:
    """Let a run in Python install in a namespace, where Helm knows mini."""
    kube.has["helm"] = "mini"
    monkeypatch.setattr("shutil.which", lambda _: "/bin/minicluster")
    monkeypatch.setattr("minicluster.release.helm.is_helm_3", lambda: True)
    monkeypatch.setattr("minicluster.sdk.cluster.settled", lambda *_: kube)


def test_a_run_of_the_sdk_tells_why_and_ends_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = namespace(job(), waiting("ContainerCreating"), helm={"--short": "run"})
    helm(monkeypatch, kube)
    monkeypatch.setattr(wait, "START_SECONDS", 0.0)
    told: list[str] = []
    with pytest.raises(EndedError, match=r"^mini can't start: the lead is Pending: ContainerCreating: MountVolume"):
        MiniCluster.run("true", image="a", name="mini", progress=told.append)
    assert told == ["installed mini in namespace lab", f"mini: Starting: {WHY}", "removing mini"]
    assert [words[0] for words in kube.helms] == ["install", "list", "uninstall"]


def test_a_run_of_the_sdk_with_a_folder_raises_the_end_of_its_lead(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kube = namespace(job(end=("Failed", "DeadlineExceeded")))
    helm(monkeypatch, kube)
    monkeypatch.setattr("minicluster.release.oneshot.job_of", lambda *_: SingleJob(1, {}, ["true"]))
    with pytest.raises(EndedError, match=r"^mini has ended: Failed: "):
        MiniCluster.run("true", image="a", name="mini", upload=str(tmp_path))
    assert [words[0] for words in kube.helms] == ["install", "list", "uninstall"]


def test_a_future_says_why_flux_can_not_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lead, "QUIET_SECONDS", 1e-9)
    cluster = mini(namespace(job(), waiting("ContainerCreating")))
    future = cluster.submit("true")
    until(lambda: future.waits, 10)
    assert repr(future) == f"<JobFuture this job pending: mini: Starting: {WHY}>"
    why = f"this job has not ended within 0.1 s: mini: Starting: {WHY}"
    with pytest.raises(WaitTimeoutError, match=f"^{re.escape(why)}$"):
        future.result(0.1)
    with pytest.raises(WaitTimeoutError, match=re.escape("Flux has not taken the job within 0.1 s: mini: Starting")):
        future.wait_for_id(0.1)
    cluster.close(0)


@pytest.mark.parametrize("name", ["", 7])
def test_what_is_no_id_has_no_future(name: Any) -> None:
    with pytest.raises(ArgumentError, match=rf"^{name!r} is no job's id: give one that jobs\(ended=True\) has$"):
        mini(namespace(job(), RUNNING)).job(name)


def test_a_run_inside_is_a_job_with_an_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def submit(_: MiniCluster, words: Any, **options: Any) -> JobFuture:
        future = JobFuture(lambda: asked.append("cancel"))
        asked.append((words, options))
        if words != ["sleep"]:
            future.end(FinishedJob("f1", 3, (("stdout", "out"), ("stderr", "err")), "failed with exit code 3"))
        return future

    monkeypatch.setattr("minicluster.sdk.cluster.settled", lambda *_: namespace(job(), RUNNING))
    monkeypatch.setattr(MiniCluster, "submit", submit)
    assert MiniCluster.run("work", inside="mini", nodes=2, tasks=4) == Result(3, "out", "err")
    with pytest.raises(WaitTimeoutError, match=r"^sleep in mini has not ended within 0\.1 s: it is cancelled$"):
        MiniCluster.run("sleep", inside="mini", timeout=0.1)
    way = "image is for a MiniCluster of its own, and mini is there: leave out one of them"
    with pytest.raises(ArgumentError, match=way):
        MiniCluster.run("work", inside="mini", image="a")
    given = {"nodes": 2, "tasks": 4, "instance": True}
    assert asked == [(["work"], given), (["sleep"], {"instance": True}), "cancel"]


def test_the_status_of_the_sdk_has_the_reasons_of_events_and_of_kueue() -> None:
    assert mini(namespace(job(), waiting("ContainerCreating"))).status()["why"] == WHY
    held = namespace(suspended(queue="q"))
    held.has["workloads.kueue.x-k8s.io"] = [workload(("QuotaReserved", "False", "no quota"))]
    shown = mini(held).status()
    assert (shown["state"], shown["why"]) == ("Suspended", "Kueue's queue q: no quota (R)")


def test_an_end_without_an_exit_code_has_the_reason_from_the_log() -> None:
    failed = job(end=("Failed", "BackoffLimitExceeded"))
    with pytest.raises(EndedError) as caught:
        mini(namespace(failed, {**ended(7), "containerStatuses": []})).wait("end")
    assert str(caught.value) == "mini has ended: Failed: the work failed with exit code 7: no input"


def silent(_: object) -> FakeChannel:
    """Return a command behind a broker that was stopped by SIGSTOP."""
    return FakeChannel(is_silent=True)


@pytest.mark.parametrize(
    ("ask_it", "found"),
    [
        (lambda cluster: cluster.status()["why"], "the lead's broker does not answer (no answer within 0.2 s)"),
        (
            lambda cluster: cluster.flux("jobs", timeout=0.2),
            "flux jobs on mini has not ended within 0.2 s: give it a longer timeout",
        ),
        (lambda cluster: cluster.wait(timeout=0.2), "mini in namespace lab: gave up after 0.2 s"),
    ],
    ids=["status", "flux", "wait"],
)
def test_the_sdk_does_not_wait_for_ever_for_a_silent_lead(
    monkeypatch: pytest.MonkeyPatch, ask_it: Callable[[MiniCluster], Any], found: str
) -> None:
    monkeypatch.setitem(ask.QUESTIONS, "status", ask.QUESTIONS["status"]._replace(seconds=0.2))
    kube = namespace(job(), STARTS if "gave up" in found else RUNNING)
    kube.commands.append(silent)
    begin = time.monotonic()
    try:
        said = ask_it(mini(kube))
    except WaitTimeoutError as error:
        said = str(error)
    assert said.startswith(found)
    assert time.monotonic() - begin < 20
