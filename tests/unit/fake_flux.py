"""A Flux of no brokers, as far as the programs of the pods ask it."""

import json
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

from state import ids, idset


@dataclass
class Answer:
    """What an RPC answers."""

    value: Any

    def get(self) -> Any:
        return self.value


def resource_set(pairs: dict[int, tuple[int, int]]) -> dict[str, Any]:
    """Return R of {rank: (cores, GPUs)}."""
    lite = [
        {"rank": str(rank), "children": {"core": idset(range(cores)), "gpu": idset(range(gpus))}}
        for rank, (cores, gpus) in pairs.items()
    ]
    return {"version": 1, "execution": {"R_lite": lite}}


@dataclass
class FakeFlux:
    """Both the handle and what is behind it; `done` has what was asked to be changed."""

    all: dict[int, tuple[int, int]]
    online: set[int]
    used: dict[int, tuple[int, int]] = field(default_factory=dict)
    drained: dict[int, str] = field(default_factory=dict)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    kvs: dict[str, Any] = field(default_factory=dict)
    done: list[Any] = field(default_factory=list)
    lookups: list[int] = field(default_factory=list)

    def rpc(self, topic: str, payload: Any = None, nodeid: int | None = None) -> Answer:
        return Answer(getattr(self, topic.replace(".", "_").replace("-", "_"))(payload, nodeid))

    def resource_status(self, _: Any, nodeid: int | None) -> dict[str, Any]:
        assert nodeid == 0
        drain = {str(rank): {"timestamp": 1.0, "reason": reason} for rank, reason in self.drained.items()}
        return {"R": resource_set(self.all), "online": idset(self.online), "drain": drain}

    def resource_drain(self, payload: Any, nodeid: int | None) -> None:
        assert (nodeid, payload["mode"]) == (0, "update")
        self.done.append(("drain", payload["targets"]))
        for rank in ids(payload["targets"]):
            self.drained.setdefault(rank, payload["reason"])

    def resource_undrain(self, payload: Any, nodeid: int | None) -> None:
        assert nodeid == 0
        self.done.append(("undrain", payload["targets"]))
        for rank in ids(payload["targets"]):
            del self.drained[rank]

    def job_list_job_stats(self, *_: Any) -> dict[str, Any]:
        states = {"depend": 0, "priority": 0, "sched": len(self.jobs), "run": len(self.used), "cleanup": 0}
        return {"job_states": {**states, "inactive": 3}, "successful": 2, "failed": 1, "canceled": 0, "timeout": 0}

    def attr_get(self, name: str) -> str:
        return {"version": "0.88.0", "broker.quorum": "1"}[name]

    def submit(self, number: int, nodes: int = 1, **fields: Any) -> None:
        """Let a job wait for nodes, a slot with a core on each."""
        slot = {"type": "slot", "count": 1, "label": "task", "with": [{"type": "core", "count": 1}]}
        jobspec = {"resources": [{"type": "node", "count": nodes, "with": [slot]}]}
        self.jobs.append({"id": number, "priority": 16, "t_depend": 100.0, "jobspec": jobspec, **fields})


class JobList:
    """Jobs that wait; no others are asked for."""

    def __init__(self, handle: FakeFlux, attrs: list[str], filters: list[str], user: str, max_entries: int) -> None:
        assert (filters, user, max_entries) == (["sched"], "all", 0)
        self.found = [{key: job[key] for key in ["id", *attrs] if key in job} for job in handle.jobs]

    def fetch_jobs(self) -> "JobList":
        return self

    def get_jobs(self) -> list[dict[str, Any]]:
        return self.found


def _lookup(handle: FakeFlux, number: int, keys: list[str]) -> dict[str, Any] | None:
    assert keys == ["jobspec"]
    handle.lookups.append(number)
    return next(({"jobspec": job["jobspec"]} for job in handle.jobs if job["id"] == number), None)


def _kvs_get(handle: FakeFlux, key: str) -> Any:
    if key not in handle.kvs:
        raise FileNotFoundError(2, "No such file or directory")
    return handle.kvs[key]


def _resource_list(handle: FakeFlux) -> Answer:
    text = json.dumps(resource_set(handle.used))
    return Answer(SimpleNamespace(allocated=SimpleNamespace(nnodes=len(handle.used), encode=lambda: text)))


def modules() -> dict[str, ModuleType]:
    """Return the modules of Flux's Python that the programs import."""
    contents: dict[str, dict[str, Any]] = {
        "flux": {"Flux": None},
        "flux.kvs": {"get": _kvs_get},
        "flux.job": {"JobList": JobList, "job_kvs_lookup": _lookup},
        "flux.resource": {"resource_list": _resource_list},
    }
    found = {name: ModuleType(name) for name in contents}
    for name, content in contents.items():
        vars(found[name]).update(content)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(found[parent], child, found[name])
    return found
