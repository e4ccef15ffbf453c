"""The SDK's log of a node other than the lead, and what it says of nodes that there are not."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from minicluster.sdk import ApiError, ArgumentError
from minicluster.sdk.lead_log import logs
from status_samples import RUNNING, job, pod

RECORD = {"groups[0].name": "gpu", "groups[0].maxSize": "3"}


def node(name: str, created: str = "2030-01-01T11:47:10Z") -> dict[str, Any]:
    """Return a pod of gpu-1."""
    labels = {"batch.kubernetes.io/job-completion-index": "1", "minicluster/group": "gpu"}
    found = pod(1, RUNNING, created, name=name, uid=name, labels=labels)
    container = {"name": "mini", "env": [{"name": "MINICLUSTER_HOME", "value": "/mnt/flux"}]}
    return {**found, "spec": {"containers": [container]}}


class Kube:
    """A namespace with the MiniCluster mini, whose node gpu-1 gets another pod before its Job ends."""

    def __init__(self) -> None:
        self.pods = [node("first")]
        self.texts = {"first": ["a"], "second": ["b", "c"]}
        self.asked: list[tuple[str, str]] = []

    def get(self, kind: str, name: str) -> Any:
        return job(2, **RECORD) if (kind, name) == ("job", "mini") else None

    def select(self, kind: str, _labels: str) -> Any:
        return {"items": [] if kind == "jobs" else self.pods}

    def job_changes(self, name: str, _seconds: float | None) -> Iterator[Any]:
        assert name == "mini-gpu"
        yield job(2)
        self.pods.append(node("second", "2030-01-01T11:50:00Z"))
        yield job(2)
        yield job(2, end=("Complete", "CompletionsReached"))

    def log(self, name: str, container: str, **_: Any) -> Any:
        self.asked.append((name, container))
        if name not in {one["metadata"]["name"] for one in self.pods}:
            raise ApiError("gone", 404)
        lines = [f"2030-01-01T12:00:0{second}Z {text}\n".encode() for second, text in enumerate(self.texts[name])]
        return SimpleNamespace(stream=lambda **_: iter(lines), close=lambda: None)


@pytest.mark.parametrize("text", ["gpu-1", "mini-gpu-1", "9"])
def test_the_sdk_returns_the_log_of_a_node_of_a_group(text: str) -> None:
    kube = Kube()
    assert list(logs(kube, "mini", "agent", node=text, follow=False)) == ["a"]
    assert kube.asked == [("first", "agent")]


def test_the_sdk_follows_a_node_through_its_pods_to_the_end_of_its_job() -> None:
    kube = Kube()
    assert list(logs(kube, "mini", "", node="gpu-1", follow=True)) == ["a", "b", "c"]
    assert {container for _, container in kube.asked} == {"mini"}


def test_the_sdk_refuses_a_node_that_there_is_not() -> None:
    why = "node='cpu-0': mini has no node cpu-0: there are 0 to 7, gpu-0 to gpu-2"
    with pytest.raises(ArgumentError, match=f"^{why}$"):
        list(logs(Kube(), "mini", "", node="cpu-0", follow=False))
