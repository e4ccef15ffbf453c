"""The SDK waits with the reasons that the commands have."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from minicluster.sdk import ApiError, EndedError, WaitTimeoutError
from minicluster.sdk.client import KubeClient
from minicluster.sdk.lead_wait import wait_for_lead
from minicluster.sdk.leads import find_lead, wait_for
from minicluster.sdk.single_run import _teller
from minicluster.sdk.status import status
from status_samples import ended, job, pod, suspended, waiting, workload

MOUNT = 'MountVolume.SetUp failed for volume "munge" : secret "munge-key" not found'
WHY = (
    f"the lead is Pending: ContainerCreating: {MOUNT}: create it in this namespace, or correct the value that names "
    "it: the pod then starts by itself"
)
HOME = [{"name": "mini", "env": [{"name": "MINICLUSTER_HOME", "value": "/mnt/flux"}]}]


class Kube:
    """A namespace with the MiniCluster mini, by the SDK's client."""

    def __init__(self, found: Any, state: Any = None) -> None:
        self.job = found
        self.pods = [{**pod(0, state, uid="u"), "spec": {"containers": HOME}}] if state else []
        self.workloads: list[Any] = []

    def __str__(self) -> str:
        return "namespace lab"

    def get(self, kind: str, _name: str) -> Any:
        return self.job if kind == "job" else None

    def select(self, kind: str, _labels: str) -> Any:
        return {"items": self.workloads if kind.startswith("workloads.") else self.pods}

    def events(self, which: str) -> Any:
        assert which.startswith("type=Warning,reason!=")
        involved = {"kind": "Pod", "name": "mini-0-x"}
        return {"items": [{"reason": "FailedMount", "message": MOUNT, "involvedObject": involved}]}

    def log_tail(self, name: str, _lines: int) -> str:
        assert name == "mini-0-x"
        return "no input\nminicluster: the job failed with exit code 7\n"

    def job_changes(self, _name: str, seconds: float | None, *_: Any) -> Iterator[Any]:
        yield self.job
        raise WaitTimeoutError(f"mini in lab: gave up after {seconds:g} s")


def test_a_wait_of_the_sdk_that_gives_up_says_why() -> None:
    kube: Any = Kube(job(), waiting("ContainerCreating"))
    for wait in (lambda: wait_for_lead(kube, "mini", 3), lambda: wait_for(kube, "mini", "quorum", 3, None)):
        with pytest.raises(WaitTimeoutError) as caught:
            wait()
        assert str(caught.value) == f"mini in lab: gave up after 3 s: Starting: {WHY}"


def test_a_run_of_the_sdk_tells_why_and_ends_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    kube: Any = Kube(job(), waiting("ContainerCreating"))
    told: list[str] = []
    tell, times = _teller(kube, "mini", told.append), iter((0.0, 60.0))
    monkeypatch.setattr("time.monotonic", lambda: next(times))
    lead = find_lead(kube, "mini")
    tell(kube.job, lead)
    with pytest.raises(EndedError, match=r"^mini can't start: the lead is Pending: ContainerCreating: MountVolume"):
        tell(kube.job, lead)
    assert told == [f"mini: Starting: {WHY}"]


def test_the_status_of_the_sdk_has_the_reasons_of_events_and_of_kueue() -> None:
    kube: Any = Kube(job(), waiting("ContainerCreating"))
    assert status(kube, "mini")["why"] == WHY
    held: Any = Kube(suspended(queue="q"))
    held.workloads = [workload(("QuotaReserved", "False", "no quota"))]
    assert (status(held, "mini")["state"], status(held, "mini")["why"]) == ("Suspended", "Kueue's queue q: no quota")


def test_an_end_without_an_exit_code_has_the_reason_from_the_log() -> None:
    failed = job(end=("Failed", "BackoffLimitExceeded"))
    kube: Any = Kube(failed, {**ended(7), "containerStatuses": []})
    with pytest.raises(EndedError) as caught:
        wait_for(kube, "mini", "end", None, None)
    assert str(caught.value) == "mini in namespace lab has ended: Failed: the work failed with exit code 7: no input"


class Resources:
    """The parts of the `kubernetes` client that lists of others' kinds need."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *groups: Any) -> None:
        self.asked: dict[str, Any] = {}
        monkeypatch.setattr("kubernetes.client.ApisApi", lambda _: self)
        monkeypatch.setattr("kubernetes.client.CustomObjectsApi", lambda _: self)
        self.groups = groups

    def get_api_versions(self, **_: Any) -> Any:
        return self

    def list_namespaced_custom_object(self, **asked: Any) -> Any:
        self.asked = asked
        return self

    data = b'{"items": [1]}'


def test_the_sdk_asks_for_kinds_of_others_in_the_version_that_the_server_prefers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = SimpleNamespace(name="kueue.x-k8s.io", preferred_version=SimpleNamespace(version="v1beta2"))
    resources, kube = Resources(monkeypatch, group), object.__new__(KubeClient)
    kube.namespace, kube._api = "lab", None
    assert kube.select("workloads.kueue.x-k8s.io", "a=b") == {"items": [1]}
    expected = {"group": "kueue.x-k8s.io", "version": "v1beta2", "plural": "workloads", "namespace": "lab"}
    assert resources.asked.items() >= {**expected, "label_selector": "a=b"}.items()
    with pytest.raises(ApiError, match=r"^the API server has no other\.io$"):
        kube.select("things.other.io", "a=b")
