"""`minicluster replace` on a real API server: Jobs that are really deleted and made anew. In the pods nothing runs."""

import base64
import gzip
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from minicluster.errors import Interrupted, MiniClusterError, StateError
from minicluster.kube.kubectl import Kubernetes
from minicluster.lifecycle import replace as replacing
from minicluster.lifecycle.leaving import HeldQueue
from minicluster.lifecycle.replace import replace
from minicluster.release import revisions
from quick import QuickCluster, take_environment
from support import Helm

from tools.releases import Release

RUNNER = {"image": "ubuntu:jammy", "volumes": {"data": {"path": "/data", "emptyDir": True}}}
VALUES: dict[str, Any] = {
    "size": 2,
    "interactive": True,
    "archive": {"path": "/data/state.tgz"},
    "containers": [RUNNER],
}
NEW = ("--set=maxSize=4", "--set=containers[0].image=ubuntu:noble")
KUBECTL = Kubernetes.kubectl
AGAIN = "run the same command again, which goes on from there"
Replace = Callable[..., list[str]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the lead, which is no Flux here, was asked for; no job runs."""
    questions: list[str] = []

    monkeypatch.setattr(HeldQueue, "settle", lambda *_: questions.append("settle"))
    return questions


@pytest.fixture
def change(
    cluster: QuickCluster, connected: Helm, release: Release, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> Replace:
    """Replaces the Job in this process, by each Helm, and returns what is said."""
    assert asked == []
    cluster.answer_reads(monkeypatch)
    take_environment(monkeypatch, connected)

    def change(options: Sequence[str] = NEW, timeout: float = 60.0) -> list[str]:
        said: list[str] = []
        replace(Kubernetes(namespace=release.namespace), release.name, options, None, timeout, said.append)
        return said

    return change


def kept(release: Release) -> list[str]:
    """Return the UIDs of what must stay."""
    found = [release.get("secret", "mc-curve"), release.get("service"), release.get("configmap", "mc-config")]
    return [each["metadata"]["uid"] for each in found]


def job(release: Release) -> tuple[str, str, str]:
    """Return the Job's UID, the image of its runner, and its maxSize."""
    found = release.get("job")
    image = next(each["image"] for each in found["spec"]["template"]["spec"]["containers"])
    return found["metadata"]["uid"], image, maximum(found)


def maximum(found: dict[str, Any]) -> str:
    text: str = found["metadata"]["annotations"]["minicluster/immutable"]
    return text.partition('"maxSize":"')[2].partition('"')[0]


def test_the_job_is_made_anew_and_all_else_stays(release: Release, change: Replace, asked: list[str]) -> None:
    release.install(**VALUES)
    release.running(2)
    before, certificate, (uid, *_) = kept(release), release.certificate(), job(release)
    said = change()
    assert said[0] == "mc: the Job is made anew, for containers[0].image, maxSize"
    assert said[1] == "mc: the old pods are gone"
    assert said[-1] == "mc: replaced, and its queue goes on"
    assert asked == ["settle"]
    assert (kept(release), release.certificate()) == (before, certificate)
    new, *values = job(release)
    assert (values, new != uid) == (["ubuntu:noble", "4"], True)
    # the same again changes nothing
    assert change() == ["mc: the live Job takes these values, so its pods stay"]
    assert job(release)[0] == new
    assert change(["--set=size=3"]) == ["mc: the live Job takes these values, so its pods stay"]
    assert (job(release)[0], release.get("job")["spec"]["completions"]) == (new, 3)
    # pods that do not start are rolled back
    wants = "--set=pod.nodeSelector.no=such-node"
    why = r"^mc was not replaced, .*gave up after 5 s: Starting: the lead is Pending: .*: it is rolled back and runs as"
    with pytest.raises(StateError, match=why):
        change(["--set=maxSize=8,containers[0].image=ubuntu:plucky", wants], timeout=5.0)
    release.running(3)
    old, *values = job(release)
    assert (values, old != new, kept(release)) == (["ubuntu:noble", "4"], True, before)
    # and the same with a better value
    assert change(["--set=maxSize=8"])[-1] == "mc: replaced, and its queue goes on"
    assert job(release)[1:] == ("ubuntu:noble", "8")


REFUSED = {
    ("--set=maxSize=1",): "size is 2, maxSize 1: lower size, or install with a larger maxSize",
    ("--set=maxSiz=4",): "maxSiz",
    (
        "--set=maxSize=4",
        "--set=archive.path=/data/x.tgz",
    ): "archive.path is /data/state.tgz, asked is /data/x.tgz: the queue",
    ("--set=maxSize=4", "--set=cleanup=true"): "cleanup is true",
}


@pytest.mark.any_helm
def test_what_would_fail_or_lose_the_queue_is_refused_before_anything_changes(
    release: Release, change: Replace, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    release.install(**VALUES)
    release.running(2)
    uid = job(release)[0]
    for options, message in REFUSED.items():
        assert message in refusal(change, options)
    # what Kubernetes would refuse
    limits = {"limits": [{"type": "Container", "max": {"memory": "1Gi"}}]}
    metadata = {"name": "few", "namespace": release.namespace}
    release.cluster.create({"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": limits})
    large = "--set=containers[0].resources.limits.memory=2Gi"
    said = refusal(change, [*NEW, large])
    assert re.match(r"nothing has changed, as the new Pod of mc would be refused: .*is 1Gi", said)
    assert (asked, job(release)[0], release.revisions()) == ([], uid, [(1, "deployed")])
    assert change([*NEW, large.replace("2Gi", "1Gi")])[-1] == "mc: replaced, and its queue goes on"
    # work that ends while the lead is asked
    release.running(2)
    uid, revisions = job(release)[0], release.revisions()

    def settle(*_: object) -> None:
        for index in (1, 0):
            release.cluster.end_pod(release.namespace, release.pod(index), 0)
        release.condition("Complete")

    monkeypatch.setattr(HeldQueue, "settle", settle)
    said = refusal(change, ["--set=maxSize=8"])
    assert said.startswith("the work of mc has ended, and a new Job would run it again: nothing is remo")
    assert (job(release)[0], release.revisions()) == (uid, revisions)


def refusal(change: Replace, options: Sequence[str]) -> str:
    """Return the one line that says why a replacement fails."""
    with pytest.raises(MiniClusterError) as error:
        change(options)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.any_helm
def test_a_minicluster_that_keeps_no_queue_is_not_replaced(
    release: Release, change: Replace, monkeypatch: pytest.MonkeyPatch
) -> None:
    release.install(size=1, interactive=True)
    release.running(1)
    monkeypatch.setattr(revisions, "is_refused", never)  # it takes seconds, and is not needed to refuse this
    with pytest.raises(StateError, match=r"^mc keeps no queue, so it would be lost: set state.capacity"):
        change()
    assert job(release)[2] == "1"


def never(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def delete_and_stop(kubernetes: Kubernetes, *words: str, **how: Any) -> str:
    """Run kubectl; stop after it has told the Jobs to go."""
    text = KUBECTL(kubernetes, *words, **how)
    if words[0] == "delete":
        raise KeyboardInterrupt
    return text


def test_an_interrupted_replacement_is_completed_by_the_same_command(
    release: Release, change: Replace, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # no hook pod is played: the command asks the lead and runs no hooks, although an upgrade would replace
    release.install(**VALUES, upgrade={"replace": True})
    release.running(2)
    before, (uid, *_) = kept(release), job(release)
    said: list[str] = []
    # each goes on from where the one before it was interrupted
    for module, name, stop in (
        (replacing.remaking, "remove", never),  # the queue is stopped
        (Kubernetes, "kubectl", delete_and_stop),
        (replacing, "_make", never),  # the old Job is gone
        (revisions, "replace", never),
        (replacing, "_wait", never),  # Helm has made the new one
    ):
        if name == "_wait":
            leave_the_record_of_a_killed_helm(release)
        with monkeypatch.context() as patch:
            patch.setattr(module, name, stop)
            with pytest.raises(Interrupted) as interrupted:
                change()
        said.append(str(interrupted.value))
    assert said == ["interrupted: mc is as before, and its queue goes on", *[f"interrupted: {AGAIN}"] * 4]
    assert asked[0] == "settle"
    change()
    release.running(2)
    new, *values = job(release)
    assert (values, new != uid) == (["ubuntu:noble", "4"], True)
    assert kept(release) == before
    assert change(["--set=size=3"]) == ["mc: the live Job takes these values, so its pods stay"]


def leave_the_record_of_a_killed_helm(release: Release) -> None:
    record = release.get("secret", "sh.helm.release.v1.mc.v1")
    labels = record["metadata"]["labels"] | {"status": "pending-upgrade", "version": "2"}
    record["metadata"] = {"name": "sh.helm.release.v1.mc.v2", "labels": labels}
    record["data"] = {"release": pending(record["data"]["release"])}
    release.kubectl("create", "-f", "-", stdin=json.dumps(record))
    assert release.revisions()[-1] == (2, "pending-upgrade")


def pending(data: str) -> str:
    """Return Helm's record of a release as that of an upgrade which has begun."""

    found = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(data))))
    found["version"], found["info"]["status"] = 2, "pending-upgrade"
    return base64.b64encode(base64.b64encode(gzip.compress(json.dumps(found).encode()))).decode()
