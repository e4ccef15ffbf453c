"""A fake Flux without brokers, with the functions that the pods' programs use."""

import errno
import importlib
import json
import runpy
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from minicluster.flux import expand_hosts
from minicluster.pod import programs
from state import parse_idset, to_idset

from tools.simulator import jobs as simulated
from tools.simulator.handle import resource_set


@dataclass
class Answer:
    """The answer of an RPC."""

    value: Any

    def get(self) -> Any:
        return self.value

    def wait_for(self, _: float) -> "Answer":
        return self


@dataclass
class FakeFlux:
    """The handle and the instance behind it; `done` records the changes that were requested."""

    all: dict[int, tuple[int, int]]
    online: set[int]
    used: dict[int, tuple[int, int]] = field(default_factory=dict)
    drained: dict[int, str] = field(default_factory=dict)
    #: Time of each drain, 1 s by default; and of the start of the lead's broker
    drained_at: dict[int, float] = field(default_factory=dict)
    starttime: float = 0.0
    #: Brokers that are connected and not online; how long ago a broker has connected, long ago by default
    joining: set[int] = field(default_factory=set)
    #: Brokers that are still online for the resource module, and no longer connected
    lost: set[int] = field(default_factory=set)
    connected: dict[int, float] = field(default_factory=dict)
    #: The children of each inner broker, by default all of the lead
    tree: dict[int, list[int]] = field(default_factory=dict)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    newest: int = 0  #: id of the last job
    #: Jobs that Flux still validates, at each question
    validates: list[int] = field(default_factory=list)
    inactive: int = 3  #: jobs that have ended
    purged: int = 0  #: jobs whose records are gone
    limit: int | None = None  #: of the records of jobs that have ended
    kvs: dict[str, Any] = field(default_factory=dict)
    #: Directories of the KVS; keys that are to be removed, and of directories that were read
    directories: dict[str, Any] = field(default_factory=dict)
    unlinked: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    done: list[Any] = field(default_factory=list)
    #: Jobs that ignore a cancellation
    stubborn: set[int] = field(default_factory=set)
    lookups: list[int] = field(default_factory=list)
    content: dict[str, Any] = field(default_factory=lambda: {"dirty": 2, "flush-batch-count": 2})
    #: Whether the content store can be compacted, and the folder in which it is
    compacts: bool = False
    statedir: str = "/"
    rank: int = 0
    state: str = "run"
    #: What the lead serves
    services: list[str] = field(default_factory=list)
    watches: dict[str, Callable[..., None]] = field(default_factory=dict)
    #: Why the queue is stopped, "" where it isn't
    stop_reason: str = ""
    #: What is counted of queues with names
    queues: list[dict[str, Any]] = field(default_factory=list)
    #: Errors of RPCs, by topic
    errors: dict[str, OSError] = field(default_factory=dict)
    #: What happens at each wait for a change, before the broker ends
    events: list[Callable[[], None]] = field(default_factory=list)
    #: Jobspec and urgency of the copies that were submitted; why Flux refuses more
    submitted: list[tuple[Any, int]] = field(default_factory=list)
    refuses: str = ""
    #: The scheduler's modules, and the resources that Fluxion holds for no job
    schedulers: tuple[str, ...] = ("sched-simple",)
    held: dict[int, tuple[int, int]] = field(default_factory=dict)

    def rpc(self, topic: str, payload: Any = None, nodeid: int | None = None) -> Answer:
        if topic in self.errors:
            raise self.errors[topic]
        return Answer(getattr(self, topic.replace(".", "_").replace("-", "_"))(payload, nodeid))

    def resource_status(self, _: Any, nodeid: int | None) -> dict[str, Any]:
        assert nodeid == 0
        drain = {
            str(rank): {"timestamp": self.drained_at.get(rank, 1.0), "reason": reason}
            for rank, reason in self.drained.items()
        }
        return {"R": resource_set(self.all), "online": to_idset(self.online), "drain": drain}

    def overlay_topology(self, payload: Any, nodeid: int | None) -> dict[str, Any]:
        assert (payload, nodeid) == ({"rank": 0}, 0)

        def part(rank: int) -> dict[str, Any]:
            return {"rank": rank, "size": 1, "children": [part(child) for child in self._below(rank)]}

        return part(0)

    def _below(self, rank: int) -> list[int]:
        return self.tree.get(rank, []) if self.tree else sorted(self.all)[1:] if rank == 0 else []

    def overlay_health(self, _: Any, nodeid: int | None) -> dict[str, Any]:
        assert nodeid in self.online, "a broker that is away is not asked"
        there = (self.online | self.joining) - self.lost
        children = [
            {"rank": rank, "status": "full" if rank in there else "offline", "duration": self.connected.get(rank, 1e12)}
            for rank in self._below(nodeid)
        ]
        return {"rank": nodeid, "status": "partial", "duration": 1.0, "children": children}

    def resource_drain(self, payload: Any, nodeid: int | None) -> None:
        assert nodeid == 0
        mode = payload.get("mode")
        if not mode and set(parse_idset(payload["targets"])) & set(self.drained):
            raise OSError(errno.EEXIST, "rank is drained already")
        self.done.append(("drain", payload["targets"]))
        for rank in parse_idset(payload["targets"]):
            if mode == "overwrite" or rank not in self.drained:
                self.drained[rank] = payload["reason"]

    def resource_undrain(self, payload: Any, nodeid: int | None) -> None:
        # with this mode it is no error that somebody has undrained a rank meanwhile
        assert (nodeid, payload["mode"]) == (0, "update")
        self.done.append(("undrain", payload["targets"]))
        for rank in parse_idset(payload["targets"]):
            self.drained.pop(rank, None)

    def module_list(self, *_: Any) -> dict[str, Any]:
        services = {"sched-simple": ["sched", "feasibility"], "sched-fluxion-qmanager": ["sched"]}
        names = ["kvs", *self.schedulers]
        return {"mods": [{"name": name, "services": [name, *services.get(name, [])]} for name in names]}

    def _fluxion(self, answer: Any) -> Any:
        if "sched-simple" in self.schedulers:
            raise OSError(errno.ENOSYS, "No service matching is registered")
        return answer

    def sched_fluxion_qmanager_params(self, *_: Any) -> Any:
        return self._fluxion({"params": {"queue-policy": "easy", "queue-params": ""}})

    def sched_fluxion_resource_params(self, *_: Any) -> Any:
        return self._fluxion({"params": {"policy": "lonode", "load-file": None}})

    def sched_fluxion_resource_find(self, payload: Any, _: int | None) -> Any:
        assert payload["criteria"] == "sched-now=allocated"
        return self._fluxion({"R": resource_set(self.held) if self.held else None})

    def minicluster_requeue(self, payload: Any, nodeid: int | None) -> dict[str, Any]:
        assert nodeid == 0
        put_back = importlib.import_module("put_back")
        found: dict[str, Any] = put_back.make_copies(self, payload["jobs"], put_back.Copies())
        self.done.append(("copies", found["copies"]))
        return found

    def service_register(self, name: str) -> Answer:
        self.services.append(name)
        return Answer(None)

    def msg_watcher_create(self, callback: Callable[..., None], _: object, topic: str) -> nullcontext[None]:
        self.watches[topic] = callback
        return nullcontext()

    def reactor_run(self) -> None:
        pass

    def respond(self, request: list[Any], answer: Any) -> None:
        request.append(answer)

    def state_machine_get(self, *_: Any) -> dict[str, str]:
        return {"state": self.state}

    def job_manager_queue_start(self, payload: Any, nodeid: int | None) -> None:
        # the next lead must not find a kept queue stopped
        assert (nodeid, payload["start"], payload["all"], payload["nocheckpoint"]) == (0, False, True, True)
        self.done.append("queue stop")
        self.stop_reason = payload["reason"]

    def job_manager_queue_status(self, _: Any, nodeid: int | None) -> dict[str, Any]:
        assert nodeid == 0
        return {"stop_reason": self.stop_reason} if self.stop_reason else {}

    def job_manager_memo(self, payload: Any, _: int | None) -> None:
        assert not payload["volatile"]
        job = next(job for job in self.jobs if job["id"] == payload["id"])
        job["annotations"] = {"user": {**job.get("annotations", {}).get("user", {}), **payload["memo"]}}

    def job_manager_urgency(self, payload: Any, _: int | None) -> None:
        job = next(job for job in self.jobs if job["id"] == payload["id"])
        job["urgency"] = job["priority"] = payload["urgency"]

    def job_manager_stats_get(self, _: Any, nodeid: int | None) -> dict[str, Any]:
        assert nodeid == 0
        return {"active_jobs": len(self.jobs), "inactive_jobs": 3, "max_jobid": self.newest}

    def job_ingest_stats_get(self, *_: Any) -> dict[str, Any]:
        backlog = self.validates.pop(0) if self.validates else 0
        crews = {"frobnicator": {"requests": 9, "backlog": 0}, "validator": {"requests": 9, "backlog": backlog}}
        return {"pipeline": crews}

    def kvs_commit(self, payload: Any, _: int | None) -> None:
        assert (payload["namespace"], payload["ops"]) == ("primary", [])

    def job_list_job_stats(self, *_: Any) -> dict[str, Any]:
        waiting = [job for job in self.jobs if job["state"] == "sched"]
        states = {"depend": 0, "priority": 0, "sched": len(waiting), "run": len(self.used), "cleanup": 0}
        ended = {"successful": 2, "failed": 1, "canceled": 0, "timeout": 0, "inactive_purged": self.purged}
        return {"job_states": {**states, "inactive": self.inactive}, **ended, "queues": self.queues}

    def attr_get(self, name: str) -> str:
        attributes = {"version": "0.88.0", "broker.quorum": "1", "broker.pid": "4711", "rank": str(self.rank)}
        return {**attributes, "statedir": self.statedir, "broker.starttime": f"{self.starttime:.2f}"}[name]

    def config_get(self, *_: Any) -> dict[str, Any]:
        return {} if self.limit is None else {"job-manager": {"inactive-num-limit": self.limit}}

    def job_manager_purge(self, payload: Any, _: int | None) -> dict[str, int]:
        assert payload == {"age_limit": -1.0, "num_limit": self.limit, "batch": 100, "force": True}
        ended = sorted((job["t_inactive"], job["id"]) for job in self.jobs if "t_inactive" in job)
        gone = {number for _, number in ended[: max(0, len(ended) - payload["num_limit"])][:100]}
        self.jobs = [job for job in self.jobs if job["id"] not in gone]
        self.purged += len(gone)
        return {"count": len(gone)}

    def directory(self, key: str) -> dict[str, Any]:
        """Return a directory of the KVS: by the names in it, other directories or values."""
        found: dict[str, Any] = self.directories
        for name in key.split("."):
            if name not in found:
                raise FileNotFoundError(2, "No such file or directory")
            found = found[name]
        return found

    def kvs_lookup(self, payload: Any, _: int | None) -> dict[str, Any]:
        assert (payload["flags"], payload["namespace"]) == (1, "primary")
        self.read.append(payload["key"])
        return {"val": {"data": dict(self.directory(payload["key"])), "type": "dir", "ver": 1}}

    def content_backing_gc_info(self, payload: Any, _: int | None) -> dict[str, int]:
        assert payload == {"epoch": 0}
        if not self.compacts:
            raise OSError(errno.ENOSYS, "No service matching content-backing.gc-info is registered")
        return {"current_epoch": 7, "high_water": 9}

    def content_stats_get(self, *_: Any) -> dict[str, Any]:
        return self.content

    def submit(self, number: int, nodes: int = 1, gpus: int = 0, **fields: Any) -> None:
        """Add a job that waits for nodes, with a slot of one core and some GPUs on each."""
        below = [{"type": "core", "count": 1}, *([{"type": "gpu", "count": gpus}] if gpus else [])]
        slot = {"type": "slot", "count": 1, "label": "task", "with": below}
        jobspec = {"resources": [{"type": "node", "count": nodes, "with": [slot]}]}
        job = {"id": number, "priority": 16, "t_depend": 100.0, "state": "sched", "jobspec": jobspec}
        self.newest = max(number, self.newest)
        self.jobs.append({**job, **fields})

    def run(self, number: int, ranks: str, **fields: Any) -> None:
        """Add a job that runs on whole nodes."""
        self.submit(number, state="run", ranks=ranks, **fields)
        self.used |= {rank: self.all[rank] for rank in parse_idset(ranks)}

    def end(self, number: int) -> None:
        """End a job."""
        self.jobs = [job for job in self.jobs if job["id"] != number]
        held = {rank for job in self.jobs if job["state"] == "run" for rank in parse_idset(job["ranks"])}
        self.used = {rank: pair for rank, pair in self.used.items() if rank in held}


class JobList:
    """The active jobs, by their states."""

    def __init__(self, handle: FakeFlux, *, attrs: list[str], filters: list[str], since: float, **query: Any) -> None:
        assert query == {"user": "all", "max_entries": 0}
        states = set().union(*(simulated.FILTERS[name] for name in filters))
        # `since` counts for jobs that have ended
        jobs = [job for job in handle.jobs if job["state"] in states and job.get("t_inactive", since + 1) > since]
        self.found = [{key: job[key] for key in ["id", *attrs] if key in job} for job in jobs]

    def fetch_jobs(self) -> "JobList":
        return self

    def get_jobs(self) -> list[dict[str, Any]]:
        return self.found


def _lookup(handle: FakeFlux, number: int, keys: list[str], original: bool = False) -> dict[str, Any] | None:
    [key] = keys
    handle.lookups.append(number)
    job = next((job for job in handle.jobs if job["id"] == number), {})
    found = job.get("original" if original and "original" in job else key)
    return None if found is None else {key: found}


class JobKVSLookup:
    """A value of several jobs; those that are gone are left out."""

    def __init__(self, handle: FakeFlux, ids: list[int], keys: list[str]) -> None:
        self.found = {number: _lookup(handle, number, keys) for number in ids}

    def data(self) -> list[dict[str, Any]]:
        return [{"id": number, **found} for number, found in self.found.items() if found]


def _submit(handle: FakeFlux, jobspec: str, urgency: int) -> int:
    parsed = json.loads(jobspec)
    if handle.refuses:
        raise OSError(errno.EINVAL, handle.refuses)
    number = 1000 + len(handle.submitted)
    handle.submitted.append((parsed, urgency))
    waits_for = [f"after-failure={each['value']}" for each in parsed["attributes"]["system"]["dependencies"]]
    handle.submit(number, state="depend", dependencies=waits_for, jobspec=parsed)
    return number


def _job_list_id(handle: FakeFlux, number: int, attrs: list[str]) -> SimpleNamespace:
    assert attrs
    found = [job for job in handle.jobs if job["id"] == number]

    def get_job() -> Any:
        if not found:
            raise FileNotFoundError(2, "No such job")
        return found[0]

    return SimpleNamespace(get_job=get_job)


def _parse_fsd(text: str) -> float:
    return float(text.removesuffix("s"))


def _kvs_get(handle: FakeFlux, key: str) -> Any:
    if key not in handle.kvs:
        raise FileNotFoundError(2, "No such file or directory")
    return handle.kvs[key]


def _kvs_put(handle: FakeFlux, key: str, value: Any) -> None:
    handle.kvs[f"{key} (not committed)"] = value


def _kvs_unlink(handle: FakeFlux, key: str) -> None:
    handle.unlinked.append(key)


def _kvs_commit(handle: FakeFlux) -> None:
    handle.kvs = {key.removesuffix(" (not committed)"): value for key, value in handle.kvs.items()}
    for key in handle.unlinked:
        *path, name = key.split(".")
        del handle.directory(".".join(path))[name]
    handle.unlinked.clear()


def _kvs_exists(handle: FakeFlux, key: str) -> bool:
    return key in handle.kvs


def _resource_list(handle: FakeFlux) -> Answer:
    text = json.dumps(resource_set(handle.used))
    return Answer(SimpleNamespace(allocated=SimpleNamespace(nnodes=len(handle.used), encode=lambda: text)))


class JobID(simulated.JobID):
    """The same, with the place of a job in the KVS."""

    @property
    def kvs(self) -> str:
        return f"job.{int(self)}"


def _cancel(handle: FakeFlux, number: int, reason: str) -> None:
    handle.done.append(("cancel", int(number), reason))
    if number not in handle.stubborn:
        handle.end(int(number))


def _kill(handle: FakeFlux, number: int, signum: int) -> None:
    handle.done.append(("kill", int(number), signum))
    handle.end(int(number))


def modules(flux: FakeFlux | None = None) -> dict[str, ModuleType]:
    """Return the modules of Flux's Python that the programs import, with one handle for all."""
    contents: dict[str, dict[str, Any]] = {
        "flux": {"Flux": lambda: flux},
        "flux.util": {"parse_fsd": _parse_fsd},
        "flux.kvs": {"get": _kvs_get, "put": _kvs_put, "commit": _kvs_commit, "exists": _kvs_exists}
        | {"put_unlink": _kvs_unlink},
        "flux.constants": {
            "FLUX_JOB_URGENCY_DEFAULT": 16,
            "FLUX_MSGTYPE_REQUEST": 1,
            "FLUX_KVS_READDIR": 1,
            "FLUX_KVS_WATCH": 4,
            "FLUX_KVS_WAITCREATE": 8,
            "FLUX_RPC_STREAMING": 2,
            "FLUX_POLLIN": 1,
        },
        "flux.future": {"Future": SimpleNamespace(get=lambda stream: stream.get())},
        "flux.job": {
            "JobList": JobList,
            "JobID": JobID,
            "JobKVSLookup": JobKVSLookup,
            "job_kvs_lookup": _lookup,
            "cancel": _cancel,
            "kill": _kill,
            "submit": _submit,
        },
        "flux.job.list": {"job_list_id": _job_list_id},
        "flux.resource": {"resource_list": _resource_list},
        "flux.hostlist": {"Hostlist": expand_hosts},
        # there from flux-core 0.72 on
        "flux.resource.journal": {},
    }
    found = {name: ModuleType(name) for name in contents}
    for name, content in contents.items():
        found[name].__spec__ = ModuleSpec(name, None, is_package=True)
        found[name].__path__ = []
        vars(found[name]).update(content)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(found[parent], child, found[name])
    return found


@dataclass
class Clock:
    """A clock that only sleep() moves, with events at certain times."""

    now: float = 0.0
    #: By time, in seconds
    happens: dict[float, Callable[[], None]] = field(default_factory=dict)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for at in sorted(at for at in self.happens if at <= self.now):
            self.happens.pop(at)()


def install(monkeypatch: pytest.MonkeyPatch, flux: FakeFlux | None = None) -> None:
    """Let what a test imports from now on have these modules."""
    for name, module in modules(flux).items():
        monkeypatch.setitem(sys.modules, name, module)


def imported(monkeypatch: pytest.MonkeyPatch, flux: FakeFlux | None, *names: str) -> Iterator[ModuleType]:
    """Yield the first of some programs of the pods, imported with these modules, and forget all of them after that."""
    install(monkeypatch, flux)
    yield importlib.import_module(names[0])
    for name in names:
        sys.modules.pop(name, None)


def run_program(
    monkeypatch: pytest.MonkeyPatch, flux: FakeFlux, program: str, *args: object, clock: Clock | None = None
) -> dict[str, Any]:
    """Run one of the pods' programs, as `flux python` does, and return its globals."""
    install(monkeypatch, flux)
    clock = clock or Clock()
    monkeypatch.setattr("time.sleep", clock.sleep)
    monkeypatch.setattr("time.monotonic", lambda: clock.now)
    monkeypatch.setattr("time.clock_gettime", lambda _: clock.now)
    monkeypatch.setattr(sys, "argv", [program, *map(str, args)])
    return runpy.run_path(str(programs()[program]), run_name="__main__")
