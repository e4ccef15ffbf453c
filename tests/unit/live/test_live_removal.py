"""The removal of Jobs by `minicluster replace`: which are deleted, and what becomes of work that ends meanwhile."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from minicluster.errors import StateError
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.tool import CommandError
from minicluster.lifecycle import remaking

CONFLICT = CommandError("kubectl delete", "Error from server (Conflict): the object has been modified")


def job(name: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "uid": f"u-{name}", "resourceVersion": "7"}, **fields}


def lead(code: int | None) -> dict[str, Any]:
    """Return a pod of index 0 whose runner has ended with a code; None: it runs."""
    state = (
        {"running": {}} if code is None else {"terminated": {"exitCode": code, "finishedAt": "2026-01-01T00:00:00Z"}}
    )
    return {
        "metadata": {
            "name": "mc-0-a",
            "namespace": "ns",
            "uid": "p",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"batch.kubernetes.io/job-completion-index": "0"},
            "annotations": {"kubectl.kubernetes.io/default-container": "mc"},
        },
        "spec": {"containers": [{"name": "mc", "env": [{"name": "MINICLUSTER_HOME", "value": "/mnt/flux"}]}]},
        "status": {"phase": "Running", "containerStatuses": [{"name": "mc", "state": state}]},
    }


@dataclass(frozen=True)
class Server(Kubernetes):
    """Jobs that go when they are deleted, and the pods at each look."""

    jobs: list[dict[str, Any]] = field(default_factory=list)
    pods_then: list[list[dict[str, Any]]] = field(default_factory=list)
    conflicts: list[dict[str, Any]] = field(default_factory=list)  #: what the own Job becomes just before its deletion
    deleted: list[tuple[str, Any]] = field(default_factory=list)

    def select(self, kind: str, labels: str = "", _fields: str = "") -> dict[str, Any]:
        assert labels
        if kind == "jobs":
            return {"items": json.loads(json.dumps(self.jobs))}
        return {"items": self.pods_then.pop(0) if len(self.pods_then) > 1 else self.pods_then[0]}

    def kubectl(self, *words: str, stdin: str = "", seconds: float = 60.0) -> str:
        assert seconds
        name = words[1].rpartition("/")[2]
        if self.conflicts:
            self.jobs[:] = [one | self.conflicts.pop() if one["metadata"]["name"] == "mc" else one for one in self.jobs]
            raise CONFLICT
        self.deleted.append((name, json.loads(stdin)["preconditions"]))
        self.jobs[:] = [one for one in self.jobs if one["metadata"]["name"] != name]
        return ""


def remove(server: Server, *, keeps_ended: bool = True) -> list[str]:
    said: list[str] = []
    remaking.remove(server, "mc", said.append, keeps_ended=keeps_ended)
    return said


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remaking, "REMOVAL_POLL_SECONDS", 0.0)


COMPLETE = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}


def test_the_own_job_goes_first_and_as_it_was_seen() -> None:
    server = Server(jobs=[job("mc-gpu"), job("mc")], pods_then=[[lead(None)], [lead(85)], []])
    assert remove(server) == ["mc: the old pods are gone"]
    seen = [(name, {"uid": f"u-{name}", "resourceVersion": "7"}) for name in ("mc", "mc-gpu")]
    assert server.deleted == seen


@pytest.mark.parametrize("conflicts", [[], [COMPLETE]], ids=["before", "at the deletion"])
def test_a_job_whose_work_has_ended_stays(conflicts: list[dict[str, Any]]) -> None:
    server = Server(jobs=[job("mc", **({} if conflicts else COMPLETE)), job("mc-gpu")], pods_then=[[]])
    server.conflicts.extend(conflicts)
    with pytest.raises(
        StateError, match=r"^the work of mc has ended, and a new Job would run it again: nothing is remo"
    ):
        remove(server)
    assert server.deleted == []
    # the new Job of a replacement that is rolled back goes in any case
    assert remove(server, keeps_ended=False) == ["mc: the old pods are gone"]


def test_a_job_that_changed_otherwise_is_removed_all_the_same() -> None:
    server = Server(jobs=[job("mc")], pods_then=[[]], conflicts=[{"status": {"ready": 1}}])
    assert remove(server) == ["mc: the old pods are gone"]
    assert [name for name, _ in server.deleted] == ["mc"]


def test_work_that_ends_well_while_the_pods_stop_is_not_run_again() -> None:
    server = Server(jobs=[job("mc")], pods_then=[[lead(None)], [lead(0)], []])
    with pytest.raises(
        StateError, match=r"^the work of mc ended well while its pods were told to stop: run the same command again to "
    ):
        remove(server)
