"""A fake Kubernetes for the agent, and the settings of an agent under test."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from budget import selector
from fake_flux import FakeFlux
from kube import KubeError

POLICY = {"min": 1, "max": 8, "backlog": 10, "idle": 60, "step_up": 0, "step_down": 0, "cpu_target": 0}
SETTINGS = {
    "name": "mc",
    "namespace": "ns",
    "size": 1,
    "max_size": 8,
    "groups": [],
    "period": 10,
    "policy": POLICY,
    "budget": None,
    "port": None,
    "container": "app",
    "cpu_request": 2.0,
}


def pod_of(index: int, state: str | bool) -> dict[str, Any]:
    """Return a pod that is gated, stuck on a lost node, ready (True), or has no place."""
    spec: dict[str, Any] = {"schedulingGates": [{"name": "kueue.x-k8s.io/elastic-job"}]} if state == "gated" else {}
    if state in ("stuck", True):
        spec["nodeName"] = "n"
    ready = {"type": "Ready", "status": str(state is True)}
    phase = "Pending" if state in ("gated", False) else "Running"
    labels = {"batch.kubernetes.io/job-completion-index": str(index)}
    return {"metadata": {"labels": labels}, "spec": spec, "status": {"phase": phase, "conditions": [ready]}}


@dataclass
class FakeKube:
    """The Job, and the errors of calls."""

    flux: FakeFlux
    size: int = 1
    use: float = 0.0
    errors: dict[str, str] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    asked: int = 0
    name: str = "mc"
    replicas: int = 1  #: of the Deployment
    seen: int = 1
    held: list[str] | None = None  #: indexes in the selector of the PodDisruptionBudget
    suspended: bool = False
    annotations: dict[str, str] = field(default_factory=dict)
    #: how many pods Kueue admits; None: the Job is in no queue
    quota: int | None = None
    admitted: int = 1
    room: int = 99  #: Kubernetes nodes, one for each pod
    placed: set[int] = field(default_factory=set)  #: indexes of the pods that have one
    stuck: set[int] = field(default_factory=set)  #: indexes of the pods on a lost one
    groups: dict[str, "FakeKube"] = field(default_factory=dict)
    parallelism: int | None = None  #: None: the size

    def of_group(self, name: str) -> "FakeKube":
        return self.groups.setdefault(name, FakeKube(self.flux, name=f"mc-{name}")) if name else self

    def _fail(self, call: str) -> None:
        if call in self.errors:
            raise KubeError(self.errors[call])

    def get_job(self) -> dict[str, Any]:
        self.asked += 1
        self._fail("get")
        return self._job()

    def _job(self) -> dict[str, Any]:
        parallelism = self.size if self.parallelism is None else self.parallelism
        spec: dict[str, Any] = {"completions": self.size, "parallelism": parallelism, "suspend": self.suspended}
        metadata: dict[str, Any] = {"annotations": dict(self.annotations)}
        if self.quota is not None:
            metadata["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
            spec["template"] = {"spec": {"schedulingGates": [{"name": "kueue.x-k8s.io/elastic-job"}]}}
        return {"metadata": metadata, "spec": spec}

    def pods(self) -> list[dict[str, Any]]:
        """Return the pods. Kueue admits a growth as a whole or not at all; each Kubernetes node has room for a pod."""
        self._fail("pods")
        assert self.quota is not None
        self.admitted = self.size if self.size <= self.quota else min(self.admitted, self.size)
        alive = [index for index in range(self.admitted) if index not in self.stuck]
        self.placed = self.placed & set(alive)
        for index in alive:
            if len(self.placed) < self.room:
                self.placed.add(index)
        states = [
            "gated" if index >= self.admitted else "stuck" if index in self.stuck else index in self.placed
            for index in range(self.size)
        ]
        return [pod_of(index, state) for index, state in enumerate(states)]

    def drop_field_ownership(self, job: dict[str, Any]) -> dict[str, Any]:
        return job

    def resize(self, job: dict[str, Any], size: int) -> dict[str, Any]:
        group = () if self.name == "mc" else (self.name,)
        self.flux.done.append((*group, "resize", job["spec"]["completions"], size))
        self._fail("resize")
        self.size, self.parallelism = size, None
        return self._job()

    def empty(self, job: dict[str, Any], most: int) -> dict[str, Any]:
        """Remove all pods, as the Job of a group with ``most`` hosts shows it."""
        self.flux.done.append((self.name, "empty", job["spec"]["completions"]))
        self._fail("empty")
        self.size, self.parallelism, self.suspended = most + 1, 0, False
        return self._job()

    def suspend(self, _: dict[str, Any], size: int, annotations: dict[str, str]) -> dict[str, Any]:
        self.flux.done.append("suspend")
        self._fail("suspend")
        self.size, self.suspended = size, True
        self.annotations |= annotations
        return self._job()

    def resume(self, _: dict[str, Any], annotations: dict[str, None]) -> dict[str, Any]:
        self.flux.done.append("resume")
        self._fail("resume")
        self.suspended = False
        for key in annotations:
            del self.annotations[key]
        return self._job()

    def event(self, _: dict[str, Any], reason: str, text: str) -> None:
        self._fail("event")
        self.events.append(f"{reason}: {text}")

    def get_deployment(self) -> dict[str, Any]:
        self._fail("deployment")
        annotations = {"minicluster/replicas": str(self.seen)}
        return {"metadata": {"annotations": annotations}, "spec": {"replicas": self.replicas}}

    def set_replicas(self, _: dict[str, Any], replicas: int, annotations: dict[str, str]) -> None:
        self.replicas, self.seen = replicas, int(annotations["minicluster/replicas"])

    def get_budget(self) -> dict[str, Any]:
        self.asked += 1
        self._fail("budget")
        return {"spec": {} if self.held is None else {"selector": selector("mc", map(int, self.held))}}

    def select(self, _: dict[str, Any], selector: dict[str, Any] | None) -> None:
        self.held = selector and selector["matchExpressions"][0]["values"]

    def cpu(self, container: str, _: int) -> float:
        assert container == "app"
        self._fail("cpu")
        return self.use


@dataclass
class Setup:
    """An agent, its inputs and its effects."""

    flux: FakeFlux
    kube: FakeKube
    agent: Any
    file: Path
    shown: list[tuple[int, str]]
    where: list[tuple[str, ...]]

    def settings(self, **changes: Any) -> None:
        self.file.write_text(json.dumps({**SETTINGS, **changes}))

    def at(self, *times: float) -> list[tuple[float, float]]:
        return [self.agent.look(now) for now in times]


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    out, err = capsys.readouterr()
    assert out == ""
    return [line.removeprefix("minicluster-agent: ") for line in err.splitlines()]
