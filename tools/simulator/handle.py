"""What the pods' programs ask Flux: the services of its brokers, and its Python modules."""

import errno
import json
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, TypeVar

from minicluster.flux.idset import parse_idset, to_idset

from tools.simulator.clock import EPOCH_SECONDS
from tools.simulator.instance import Instance
from tools.simulator.jobs import FILTERS, JobID

#: How long a request takes, or its answer; and one of a few on a busy machine
REQUEST_SECONDS, SLOW_SECONDS, SLOW_PART = (0.001, 0.05), (0.05, 3.0), 0.03
T = TypeVar("T")


def resource_set(pairs: Mapping[int, tuple[int, int]]) -> dict[str, Any]:
    """Return R of {rank: (cores, GPUs)}."""
    lite = [
        {"rank": str(rank), "children": {"core": to_idset(range(cores)), "gpu": to_idset(range(gpus))}}
        for rank, (cores, gpus) in pairs.items()
    ]
    return {"version": 1, "execution": {"R_lite": lite}}


class Handle:
    """A connection to the broker of a rank; it breaks when that ends."""

    def __init__(self, instance: Instance, rank: int) -> None:
        self.instance, self.rank = instance, rank
        self._broker, self._generation = instance.brokers.get(rank), instance.generation

    def check(self) -> Instance:
        """Return the instance. Raises OSError when this broker, or its lead, is gone."""
        its = self.instance
        if its.brokers.get(self.rank) is not self._broker or its.generation != self._generation or not its.is_alive:
            raise OSError(errno.EHOSTUNREACH, "No route to host")
        return its

    def ask(self, question: Callable[[], T]) -> T:
        """Ask the instance: the question or its answer takes its time, and meanwhile other things happen."""
        its = self.instance
        delay = its.random.uniform(*(SLOW_SECONDS if its.random.random() < SLOW_PART else REQUEST_SECONDS))
        is_late = its.random.random() < 0.5
        if its.loop.running and not is_late:
            its.loop.sleep(delay)
        answer = question()
        if its.loop.running and is_late:
            its.loop.sleep(delay)
            self.check()
        return answer

    def attr_get(self, name: str) -> str:
        """Return an attribute of the broker."""
        start = EPOCH_SECONDS + self.check().starttime
        return {"rank": str(self.rank), "broker.pid": str(1000 + self.rank), "broker.starttime": f"{start:.2f}"}[name]

    def rpc(self, topic: str, payload: Any = None, **_: int) -> SimpleNamespace:
        """Ask a service."""
        if topic == "resource.drain":
            self.instance.drains()
        answer = self.ask(lambda: getattr(self, topic.replace(".", "_").replace("-", "_"))(self.check(), payload))
        future = SimpleNamespace(get=lambda: answer)
        future.wait_for = lambda _: future
        return future

    def resource_status(self, its: Instance, _: Any) -> dict[str, Any]:
        """Answer with the nodes, those that are online and the drained ones."""
        drain = {
            str(rank): {"timestamp": EPOCH_SECONDS + int(at), "reason": reason}
            for rank, (reason, at) in its.drained.items()
        }
        pairs = {rank: (cores, 0) for rank, cores in its.cores.items()}
        return {"R": resource_set(pairs), "online": to_idset(its.online), "drain": drain}

    def resource_drain(self, its: Instance, payload: Any) -> None:
        """Drain ranks."""
        ranks, mode = parse_idset(payload["targets"]), payload.get("mode")
        if not mode and its.drained.keys() & set(ranks):
            raise OSError(errno.EEXIST, "rank is drained already")
        for rank in ranks:
            if rank not in its.drained:
                its.drained[rank] = (payload["reason"], its.loop.now)

    def resource_undrain(self, its: Instance, payload: Any) -> None:
        """Undrain ranks."""
        for rank in parse_idset(payload["targets"]):
            its.drained.pop(rank, None)
        its.schedule()

    def overlay_topology(self, its: Instance, _: Any) -> dict[str, Any]:
        """Answer with a flat tree."""
        return {"rank": 0, "children": [{"rank": rank} for rank in its.cores if rank]}

    def overlay_health(self, its: Instance, _: Any) -> dict[str, Any]:
        """Answer with the brokers that are connected, and since when."""
        children = [
            {"rank": rank, "status": "full", "duration": its.loop.now - its.brokers[rank].since}
            if rank in its.brokers
            else {"rank": rank, "status": "offline", "duration": 0.0}
            for rank in its.cores
            if rank
        ]
        return {"children": children}

    def state_machine_get(self, its: Instance, _: Any) -> dict[str, str]:
        """Answer with the state of this broker."""
        return {"state": "run" if its.brokers[self.rank].is_online else "init"}

    def job_manager_stats_get(self, its: Instance, _: Any) -> dict[str, int]:
        """Answer with the active jobs, and the id of the last one."""
        return {
            "active_jobs": len(its.active),
            "max_jobid": its.newest,
        }

    def job_manager_queue_start(self, its: Instance, payload: Any) -> None:
        """Stop the queue until the next lead."""
        assert payload["nocheckpoint"], "the next lead would find the queue stopped"
        its.is_stopped = not payload["start"]

    def job_manager_memo(self, its: Instance, payload: Any) -> None:
        """Take a memo of a job; nobody reads it here."""
        if payload["id"] not in its.active:
            raise OSError(errno.ENOENT, "unknown job id")

    def minicluster_requeue(self, its: Instance, payload: Any) -> Any:
        """Ask the program on the lead for copies of jobs."""
        if its.service is None:
            raise OSError(errno.ENOSYS, "No service matching minicluster.requeue is registered")
        # one thread answers all
        with its.serving:
            return its.service(payload["jobs"])


class JobList:
    """A list of jobs, as job-list knows them."""

    def __init__(self, handle: Handle, *, attrs: list[str], filters: list[str], since: float, **_: Any) -> None:
        states = set().union(*(FILTERS[name] for name in filters))
        rows = handle.ask(lambda: [dict(job.listed) for job in handle.check().jobs.values()])
        rows = [row for row in rows if row.get("state") in states and row.get("t_inactive", since + 1) > since]
        self._rows = [{key: row[key] for key in ["id", *attrs] if key in row} for row in rows]

    def fetch_jobs(self) -> "JobList":
        """Return the list."""
        return self

    def get_jobs(self) -> list[dict[str, Any]]:
        """Return the jobs."""
        return self._rows


def _lookup(handle: Handle, number: int, **_: Any) -> dict[str, Any] | None:
    job = handle.ask(lambda: handle.check().jobs.get(number))
    return {"jobspec": job.jobspec} if job else None


def _list_now(handle: Handle, number: int, _: list[str]) -> SimpleNamespace:
    its = handle.check()
    return SimpleNamespace(get_job=lambda: its.list_now(its.jobs[number]))


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


def modules(instance: Instance) -> dict[str, Any]:
    """Return what stands for Flux's Python modules, by their names."""
    job_list = SimpleNamespace(job_list_id=_list_now)
    job = SimpleNamespace(
        JobList=JobList,
        JobID=JobID,
        job_kvs_lookup=_lookup,
        submit=lambda handle, text, urgency: handle.ask(lambda: handle.check().submit(json.loads(text), urgency, 0.0)),
        cancel=lambda handle, number, note: handle.ask(lambda: handle.check().cancel(int(number), note)),
        kill=lambda handle, number, signum: handle.ask(lambda: handle.check().kill(int(number), signum)),
        list=job_list,
    )
    kvs = SimpleNamespace(get=_kvs_get, put=_kvs_put, commit=lambda _: instance.changed("size"))
    constants = SimpleNamespace(FLUX_MSGTYPE_REQUEST=1, FLUX_RPC_STREAMING=2, FLUX_KVS_WATCH=4, FLUX_KVS_WAITCREATE=8)
    resource = SimpleNamespace(resource_list=_resource_list)
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
