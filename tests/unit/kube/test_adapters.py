"""The port to Kubernetes by kubectl: objects, commands in pods, logs and what has changed."""

import math
import time
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest
from live_kubectl import FORBIDDEN, Kubectl
from minicluster.errors import AwayError, RefusedError
from minicluster.kube.kubectl import Kubernetes
from minicluster.lead.ask import read
from status_samples import asleep, job, pod


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    """A folder of answers."""
    world = Kubectl(tmp_path)
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    return world


@pytest.fixture
def kube(world: Kubectl) -> Kubernetes:
    assert world.environment["PATH"].startswith(str(world.folder))
    return Kubernetes(namespace="lab")


def test_objects_are_maps_and_what_is_not_there_is_empty(world: Kubectl, kube: Kubernetes) -> None:
    assert kube.get("job", "mini") == job()
    assert [one["metadata"]["name"] for one in kube.select("pods", "a=b")["items"]] == ["mini-0-x"]
    world.has(workloads={"items": [1]})
    assert kube.select("workloads.kueue.x-k8s.io", "a=b") == {"items": [1]}
    world.has(job=None, pods=None)
    assert (kube.get("job", "mini"), kube.select("pods", "a=b"), kube.select("events")) == ({}, *[{"items": []}] * 2)


def test_a_namespace_is_there_or_not(world: Kubectl, kube: Kubernetes) -> None:
    assert kube.get("namespace", "lab") == {"kind": "Namespace"}
    (world.folder / "no-namespace").touch()
    assert kube.get("namespace", "lab") == {}


def test_a_refusal_is_told_from_a_server_that_is_not_there(world: Kubectl, kube: Kubernetes) -> None:
    world.has(job=FORBIDDEN.format("jobs", "get"), pods="Error from server (ServiceUnavailable): later")
    with pytest.raises(RefusedError) as caught:
        kube.get("job", "mini")
    assert (caught.value.status, caught.value.is_forbidden) == (403, True)
    assert caught.value.reason == FORBIDDEN.format("jobs", "get")
    with pytest.raises(AwayError) as away:
        kube.select("pods", "a=b")
    assert not away.value.is_forbidden


def test_a_change_returns_the_object_unless_somebody_else_has_changed_it(world: Kubectl, kube: Kubernetes) -> None:
    world.has(patch=asleep("8", "minicluster-agent"))
    assert kube.patch("job", "mini", {"spec": {"suspend": False}}, "me") == asleep("8", "minicluster-agent")
    world.has(patch="Error from server (Conflict): it has been modified")
    assert kube.patch("job", "mini", {}, "me") is None


def test_what_would_be_made_is_told_or_refused(world: Kubectl, kube: Kubernetes) -> None:
    what = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"generateName": "a-"}}
    world.has(create={**what, "spec": {"storageClassName": "near"}})
    assert kube.made(what) == {**what, "spec": {"storageClassName": "near"}}
    world.has(create=FORBIDDEN.format("roles", "create"))
    with pytest.raises(RefusedError) as caught:
        kube.made(what)
    assert caught.value.is_forbidden


def test_a_command_has_its_input_its_streams_and_its_exit_code(kube: Kubernetes) -> None:
    words = ("sh", "-c", 'read -r line; echo "<$line>"; echo no >&2; exit 3')
    with closing(kube.run("mini-0-x", "mini", words, has_input=True)) as channel:
        channel.write(b"a b\n")
        assert read(channel, 30) == b"<a b>\n"
    assert (channel.exit_code, channel.stderr.splitlines()[0]) == (3, b"no")


def test_more_errors_than_a_pipe_holds_block_no_command(kube: Kubernetes) -> None:
    words = ("sh", "-c", "head -c 200000 /dev/zero >&2; echo out; head -c 200000 /dev/zero >&2; echo end")
    with closing(kube.run("mini-0-x", "mini", words)) as channel:
        assert read(channel, 30) == b"out\nend\n"
    assert (channel.exit_code, len(channel.stderr)) == (0, 1 << 16)


def test_a_command_that_reads_nothing_holds_nobody_up(kube: Kubernetes) -> None:
    begin = time.monotonic()
    with closing(kube.run("mini-0-x", "mini", ("sleep", "30"), has_input=True)) as channel:
        channel.write(b"x" * 300_000)
        assert read(channel, 0.2) is None
    assert time.monotonic() - begin < 20


def test_more_input_than_a_pipe_holds_reaches_a_command(kube: Kubernetes) -> None:
    with closing(kube.run("mini-0-x", "mini", ("sh", "-c", "head -c 300000 | wc -c"), has_input=True)) as channel:
        for _ in range(3):
            channel.write(b"x" * 100_000)
        assert read(channel, 30) == b"300000\n"


def test_a_command_without_an_answer_is_left(kube: Kubernetes) -> None:
    begin = time.monotonic()
    with closing(kube.run("mini-0-x", "mini", ("sleep", "30"))) as channel:
        assert read(channel, 0.2) is None
    assert time.monotonic() - begin < 20


def test_a_command_that_the_user_may_not_run_is_refused(world: Kubectl, kube: Kubernetes) -> None:
    said = 'pods "mini-0-x" is forbidden: User "u" cannot create resource "pods/exec"'
    for name in ("refused", "exec.error"):
        (world.folder / name).write_text(said)
    with pytest.raises(RefusedError) as caught, closing(kube.run("mini-0-x", "mini", ("true",))) as channel:
        read(channel, 30)
    assert (caught.value.is_forbidden, caught.value.reason) == (True, said)


def test_a_log_comes_in_parts_and_one_that_is_not_there_is_refused(world: Kubectl, kube: Kubernetes) -> None:
    text = b"2030-01-01T12:00:00Z \xff\n" * 5000
    (world.folder / "logs").write_bytes(text)
    assert b"".join(kube.log("mini-0-x", "mini", times=True)) == text
    # by default that of the container that the pod names
    world.has(pod=pod(0))
    assert b"".join(kube.log("mini-0-x", tail=5)) == text
    for place in (kube, kube.within(30), kube.within(math.inf)):
        assert b"".join(place.log("mini-0-x", "mini", follow=True)) == text
    (world.folder / "logs.error").write_text('Error from server (NotFound): pods "mini-0-x" not found')
    with pytest.raises(RefusedError):
        list(kube.log("mini-0-x", "mini"))


def test_sights_come_until_the_deadline_and_once_more(kube: Kubernetes) -> None:
    with closing(kube.sights("mini", "a=b")) as sights:
        for job_now, pods in islice(sights, 3):
            assert (job_now, [one["metadata"]["name"] for one in pods["items"]]) == (job(), ["mini-0-x"])
    begin = time.monotonic()
    assert list(kube.within(0).sights("mini", "a=b"))
    assert list(kube.within(0.5).sights("mini", "a=b"))
    assert time.monotonic() - begin < 20
    # without a change it comes all the same
    with closing(kube.sights("mini", "a=b", 0.01)) as sights:
        next(sights)
