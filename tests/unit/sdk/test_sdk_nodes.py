"""The SDK's log of a node other than the lead, and what it says of nodes that there are not."""

from typing import Any

import pytest
from fake_kube import FakeKube, Then
from minicluster.sdk import ArgumentError, MiniCluster
from status_samples import RUNNING, job, pod

RECORD = {"groups[0].name": "gpu", "groups[0].maxSize": "3"}


def node(name: str, created: str = "2030-01-01T11:47:10Z") -> dict[str, Any]:
    """Return a pod of gpu-1."""
    labels = {"batch.kubernetes.io/job-completion-index": "1", "minicluster/group": "gpu"}
    found = pod(1, RUNNING, created, name=name, uid=name, labels=labels)
    container = {"name": "mini", "env": [{"name": "MINICLUSTER_HOME", "value": "/mnt/flux"}]}
    return {**found, "spec": {"containers": [container]}}


def log(*texts: str) -> bytes:
    """Return a log."""
    return "".join(f"2030-01-01T12:00:0{second}Z {text}\n" for second, text in enumerate(texts)).encode()


@pytest.fixture
def kube() -> FakeKube:
    """A namespace with the MiniCluster mini, whose node gpu-1 gets another pod before its Job ends."""
    first, second = node("first"), node("second", "2030-01-01T11:50:00Z")
    looks = Then([[first]] * 4 + [[first, second]])
    ends = Then([job(2), job(2), job(2, end=("Complete", "CompletionsReached"))])
    has = {"job": job(2, **RECORD), "pods": looks, "jobs": [], "job mini-gpu": ends}
    return FakeKube(has=has, logs={"first": log("a"), "second": log("b", "c")})


@pytest.fixture
def mini(kube: FakeKube) -> MiniCluster:
    return MiniCluster(kube, "mini", is_own=False)


@pytest.mark.parametrize("text", ["gpu-1", "mini-gpu-1", "9"])
def test_the_sdk_returns_the_log_of_a_node_of_a_group(kube: FakeKube, mini: MiniCluster, text: str) -> None:
    assert list(mini.logs("agent", node=text)) == ["a"]
    assert kube.asked[-1] == ("log", "first", "agent")


def test_the_sdk_follows_a_node_through_its_pods_to_the_end_of_its_job(kube: FakeKube, mini: MiniCluster) -> None:
    assert list(mini.logs(node="gpu-1", follow=True)) == ["a", "b", "c"]
    assert {asked[2] for asked in kube.asked if asked[0] == "log"} == {"mini"}


def test_the_sdk_refuses_a_node_that_there_is_not(mini: MiniCluster) -> None:
    why = "mini has no node cpu-0: there are 0 to 7, gpu-0 to gpu-2"
    with pytest.raises(ArgumentError, match=f"^{why}$"):
        list(mini.logs(node="cpu-0"))
