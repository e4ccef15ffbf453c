"""What the pods' programs ask Flux: the services of its brokers."""

import errno
from collections.abc import Callable, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any, TypeVar

from minicluster.flux import parse_idset, to_idset

from tools.simulator.broker import Service
from tools.simulator.clock import EPOCH_SECONDS, FOREVER_SECONDS
from tools.simulator.instance import Instance

#: How long a request takes, or its answer; and one of a few on a busy machine
REQUEST_SECONDS, SLOW_SECONDS, SLOW_PART = (0.001, 0.05), (0.05, 3.0), 0.03
#: How often who waits for a service looks whether it is still there
ANSWER_POLL_SECONDS = 0.02
T = TypeVar("T")


@cache
def _first(count: int) -> str:
    return to_idset(range(count))


def resource_set(pairs: Mapping[int, tuple[int, int]]) -> dict[str, Any]:
    """Return R of {rank: (cores, GPUs)}."""
    lite = [
        {"rank": str(rank), "children": {"core": _first(cores), "gpu": _first(gpus)}}
        for rank, (cores, gpus) in pairs.items()
    ]
    return {"version": 1, "execution": {"R_lite": lite}}


class Handle:
    """A connection to the broker of a rank; it breaks when that ends."""

    def __init__(self, instance: Instance, rank: int) -> None:
        self.instance, self.rank = instance, rank
        self._broker, self.generation = instance.brokers.get(rank), instance.generation

    def check(self) -> Instance:
        """Return the instance. Raises OSError when this broker, or its lead, is gone."""
        its = self.instance
        if its.brokers.get(self.rank) is not self._broker or its.generation != self.generation or not its.is_alive:
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
        own = {"rank": str(self.rank), "broker.pid": str(1000 + self.rank), "broker.starttime": f"{start:.2f}"}
        return {**own, "version": "0.88.0"}[name]

    def rpc(self, topic: str, payload: Any = None, *_: int, **__: int) -> SimpleNamespace:
        """Ask a service."""
        if topic == "resource.drain":
            self.instance.drains()
        method = getattr(self, topic.replace(".", "_").replace("-", "_"), no_service)
        answer = self.ask(lambda: method(self.check(), payload))
        if isinstance(answer, SimpleNamespace):
            while not hasattr(answer, "reply"):
                self.instance.loop.sleep(ANSWER_POLL_SECONDS)
                if self.check().service is not answer.service:
                    no_service(self.instance, payload)
            answer = answer.reply
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

    def job_ingest_stats_get(self, its: Instance, _: Any) -> dict[str, Any]:
        """Answer with the jobs that it looks at."""
        return {"pipeline": {"validator": {"requests": its.given, "backlog": its.backlog}}}

    def kvs_commit(self, _its: Instance, _: Any) -> None:
        """Answer when what was written before is."""

    def job_manager_queue_start(self, its: Instance, payload: Any) -> None:
        """Stop the queue until the next lead."""
        assert payload["nocheckpoint"], "the next lead would find the queue stopped"
        its.is_stopped, its.stop_reason = not payload["start"], payload.get("reason", "")
        if payload["start"]:
            its.schedule()

    def job_manager_queue_list(self, _its: Instance, _: Any) -> dict[str, list[str]]:
        """Answer that no queue has a name."""
        return {"queues": []}

    def job_manager_memo(self, its: Instance, payload: Any) -> None:
        """Take a memo of a job; nobody reads it here."""
        if payload["id"] not in its.active:
            raise OSError(errno.ENOENT, "unknown job id")

    def minicluster_requeue(self, its: Instance, payload: Any) -> Any:
        """Ask the program on the lead for copies of jobs: it is woken, and answers later."""
        if its.service is None or its.service.process.is_over:
            no_service(its, payload)
        assert its.service
        request = SimpleNamespace(payload=payload, service=its.service)
        its.service.requests.append(request)
        its.service.process.wake(0.0)
        return request

    def service_register(self, _name: str) -> SimpleNamespace:
        """Register the service of the program that runs."""
        its = self.check()
        assert its.loop.running
        its.service = Service(its.loop.running)
        return SimpleNamespace(get=lambda: None)

    def msg_watcher_create(self, answer: Callable[..., None], _: int, topic: str) -> "Handle":
        """Answer the requests of pods that leave by a function; nobody asks for local code."""
        if topic.endswith(".requeue"):
            self._answer = answer
        return self

    def __enter__(self) -> None:
        """Begin to answer."""

    def __exit__(self, *_: object) -> None:
        """Answer no more."""

    def reactor_run(self) -> None:
        """Answer requests, one after the other."""
        service = self.check().service
        while service:
            while service.requests:
                self._answer(self, None, service.requests.pop(0), None)
            self.instance.loop.sleep(FOREVER_SECONDS)

    def respond(self, request: SimpleNamespace, reply: Any) -> None:
        """Answer a request."""
        request.reply = reply

    def module_list(self, _its: Instance, _: Any) -> dict[str, Any]:
        """Answer with the modules."""
        return {"mods": [{"name": "sched-simple", "services": ["sched"]}]}

    def config_get(self, _its: Instance, _: Any) -> dict[str, Any]:
        """Answer with the configuration."""
        return {}

    def job_manager_queue_status(self, its: Instance, _: Any) -> dict[str, Any]:
        """Answer with the status of the queue."""
        return {"start": not its.is_stopped, **({"stop_reason": its.stop_reason} if its.is_stopped else {})}

    def job_manager_urgency(self, its: Instance, payload: Any) -> None:
        """Change the urgency of a job."""
        its.urge(payload["id"], payload["urgency"])


def no_service(_its: Instance, _payload: Any) -> None:
    """Tell that nothing answers."""
    raise OSError(errno.ENOSYS, "No service matching is registered")
