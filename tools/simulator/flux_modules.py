"""What stands for Flux's Python modules."""

import errno
import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from tools.simulator.handle import ANSWER_POLL_SECONDS, Handle, resource_set
from tools.simulator.instance import Instance
from tools.simulator.jobs import FILTERS, JobID, wanted


class JobList:
    """A list of jobs, as job-list knows them."""

    def __init__(
        self, handle: Handle, *, filters: list[str], attrs: Sequence[str] = (), since: float = 0.0, **_: Any
    ) -> None:
        states = set().union(*(FILTERS[name] for name in filters))

        def rows() -> list[dict[str, Any]]:
            known = [job.listed for job in handle.check().jobs.values() if job.listed.get("state") in states]
            listed = [row for row in known if row.get("t_inactive", since + 1) > since]
            return [{key: row[key] for key in ["id", *attrs] if key in row} for row in listed]

        self._rows = handle.ask(rows)

    def fetch_jobs(self) -> "JobList":
        """Return the list."""
        return self

    def get_jobs(self) -> list[dict[str, Any]]:
        """Return the jobs."""
        return self._rows


def _lookup(handle: Handle, number: int, **_: Any) -> dict[str, Any] | None:
    job = handle.ask(lambda: handle.check().jobs.get(number))
    return {"jobspec": job.jobspec} if job else None


def _lookups(handle: Handle, ids: list[int], keys: Sequence[str] = ("jobspec",)) -> SimpleNamespace:
    def found() -> list[dict[str, Any]]:
        jobs = [job for number, job in handle.check().jobs.items() if number in ids]
        if "R" in keys:
            pairs = {job.number: dict.fromkeys(job.ranks, (wanted(job.jobspec)[1], 0)) for job in jobs if job.ranks}
            return [{"id": number, "R": resource_set(pair)} for number, pair in pairs.items()]
        return [{"id": job.number, "jobspec": job.jobspec} for job in jobs]

    rows = handle.ask(found)
    return SimpleNamespace(data=lambda: rows)


class ResourceSet:
    """Resources that a job's constraints may narrow."""

    instance: Instance

    def __init__(self, _resources: Any) -> None:
        self.ranks: list[int] = []

    def copy_constraint(self, constraints: str) -> "ResourceSet":
        """Return those that match constraints."""
        self.ranks = [*self.instance.allowed(json.loads(constraints))]
        return self


def _list_now(handle: Handle, number: int, _: list[str]) -> SimpleNamespace:
    its = handle.check()
    if number not in its.jobs:
        raise FileNotFoundError(errno.ENOENT, "No such job")
    if its.loop.running:
        # it answers once it knows the job, and what came before
        its.loop.sleep(its.listed_at - its.loop.now)
        handle.check()
    return SimpleNamespace(get_job=lambda: its.list_now(its.jobs[number]))


def _submit(handle: Handle, text: str, urgency: int) -> int:
    numbers: list[int] = []
    its = handle.check()
    handle.ask(lambda: its.ingest(lambda: its.submit(json.loads(text), urgency, 0.0), numbers.append))
    while not numbers:
        its.loop.sleep(ANSWER_POLL_SECONDS)
        handle.check()
    return numbers[0]


def _kvs_get(handle: Handle, key: str) -> Any:
    if key not in handle.check().kvs:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")
    return handle.check().kvs[key]


def _kvs_put(handle: Handle, key: str, value: Any) -> None:
    handle.check().kvs[key] = value


def _resource_list(handle: Handle) -> SimpleNamespace:
    used = handle.ask(lambda: handle.check().used())
    text = json.dumps(resource_set(used))
    allocated = SimpleNamespace(nnodes=len(used), encode=lambda: text)
    return SimpleNamespace(get=lambda: SimpleNamespace(allocated=allocated))


class Spec:
    """What stands for Flux's JobspecV1."""

    def __init__(self, nodes: int, cores: int) -> None:
        self.environment, self.cwd, self.duration = dict[str, str](), "", 0.0
        slot = {"type": "slot", "count": 1, "with": [{"type": "core", "count": cores}]}
        self.jobspec: dict[str, Any] = {
            "resources": [{"type": "node", "count": nodes, "with": [slot]}],
            "tasks": [],
            "attributes": {"system": {"duration": 0}, "user": {}},
        }

    @classmethod
    def from_command(cls, _command: list[str], *, num_nodes: int, cores_per_task: int, **_: Any) -> "Spec":
        """Return the one of a command."""
        return cls(num_nodes or 1, cores_per_task)

    def setattr(self, name: str, value: Any) -> None:
        """Set an attribute."""
        *path, last = name.split(".")
        place = self.jobspec["attributes"]
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value


def modules(instance: Instance) -> dict[str, Any]:
    """Return what stands for Flux's Python modules, by their names."""
    job_list = SimpleNamespace(job_list_id=_list_now)
    job = SimpleNamespace(
        JobList=JobList,
        JobID=JobID,
        job_kvs_lookup=_lookup,
        JobKVSLookup=_lookups,
        JobspecV1=Spec,
        submit=_submit,
        cancel=lambda handle, number, note: handle.ask(lambda: handle.check().cancel(int(number), note)),
        kill=lambda handle, number, signum: handle.ask(lambda: handle.check().kill(int(number), signum)),
        list=job_list,
    )
    kvs = SimpleNamespace(get=_kvs_get, put=_kvs_put, commit=lambda _: instance.changed("size"))
    names = ("MSGTYPE_REQUEST", "RPC_STREAMING", "KVS_WATCH", "KVS_WAITCREATE", "KVS_SYNC", "POLLIN", "POLLOUT")
    constants = SimpleNamespace(**{f"FLUX_{name}": 1 << bit for bit, name in enumerate(names)})
    own_set = type("ResourceSet", (ResourceSet,), {"instance": instance})
    resource = SimpleNamespace(resource_list=_resource_list, ResourceSet=own_set)
    util = SimpleNamespace(parse_fsd=lambda text: float(text.removesuffix("s")))
    flux = {"job": job, "kvs": kvs, "constants": constants, "resource": resource, "util": util}
    return {
        "flux": SimpleNamespace(Flux=lambda: Handle(instance, 0), **flux),
        **{f"flux.{name}": module for name, module in flux.items()},
        "flux.job.list": job_list,
        "flux.future": SimpleNamespace(Future=None),
        # offers.py looks whether there is flux.resource.journal
        "importlib.util": SimpleNamespace(find_spec=lambda _: None),
    }
