"""A model of Kubernetes for the Indexed Jobs of one MiniCluster: API server, Job controller, kubelets of their pods.

Times are from the seed. A pod that is told to stop runs the program that ships for it.
"""

import copy
import math
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tools.simulator.clock import Loop, Process
from tools.simulator.indexed_job import IndexedJob, merge
from tools.simulator.instance import Instance
from tools.simulator.kueue import Kueue, pods_of

#: What a pod of ours has as its grace period, and the parts of it: jobs go on, jobs are ended
GRACE_SECONDS, LEAVE_SECONDS, KILL_SECONDS = 40.0, 20.0, 12.0
#: How long a request to the API server takes, and its answer; and one that fails
REQUEST_SECONDS, TIME_OUT_SECONDS = (0.002, 0.2), (0.01, 10.0)
#: After which a pod on a lost machine is removed
LOST_NODE_SECONDS = 90.0


@dataclass(eq=False)
class Pod:
    """A pod of a Job."""

    index: int  #: its rank in Flux
    leaves: bool = False  #: it was told to stop
    is_lost: bool = False  #: its machine is gone
    is_gated: bool = False  #: Kueue has no quota for it yet
    program: Process | None = None  #: what it runs then
    deaths: int = 0


class Kubernetes:
    """The API server with the Jobs, their controller and their pods."""

    def __init__(self, loop: Loop, random: Random, instance: Instance, sizes: Mapping[str, int]) -> None:
        self.loop, self.random, self.instance = loop, random, instance
        self.pods: dict[int, Pod] = {}
        self.jobs = {f"mc-{name}" if name else "mc": IndexedJob(instance.groups[name], sizes[name]) for name in sizes}
        self.own = self.jobs["mc"]
        self.job = self.own.manifest
        self.failed = -math.inf  #: when a request has failed last
        self.down_until, self.error_part, self.lost_answer_part = 0.0, 0.0, 0.0
        self.leave: Callable[[int], Any] = lambda _: None  #: the program of a leaving pod, by its index
        self.lead_started: Callable[[], None] = lambda: None
        self.shrinks: Callable[[IndexedJob, int], None] = lambda *_: None  #: is asked before a Job gets smaller
        self.suspended: Callable[[], None] = lambda: None
        self.kueue: Kueue | None = None
        self._is_reconciling = False
        self.reconcile_soon()

    # the API server

    def call(self, error: Callable[[str], Exception], method: str, path: str, body: Any) -> Any:
        """Answer a request of the agent, or raise what ``error`` makes of a text."""
        if self.loop.now < self.down_until or self.random.random() < self.error_part:
            self.failed = self.loop.now
            self._wait(*TIME_OUT_SECONDS)
            raise error(f"{method} {path}: timed out")
        self._wait(*REQUEST_SECONDS)
        url = urllib.parse.urlsplit(path)
        if url.path.endswith("/pods"):
            answer = {"items": pods_of(self, self.jobs[url.query.rpartition("=")[2].rpartition("%3D")[2]])}
        else:
            answer = self._answer(error, method, url.path.rsplit("/", maxsplit=2), body)
        if method != "GET" and self.random.random() < self.lost_answer_part:
            self.failed = self.loop.now
            self._wait(*TIME_OUT_SECONDS)
            raise error(f"{method} {path}: the answer was lost")
        answer = copy.deepcopy(answer)
        self._wait(*REQUEST_SECONDS)
        return answer

    def _wait(self, least: float, most: float) -> None:
        if self.loop.running:
            self.loop.sleep(self.random.uniform(least, most))

    def _answer(self, error: Callable[[str], Exception], method: str, path: list[str], body: Any) -> Any:
        if path[-1] == "events":
            return {}
        kind, job = path[-2], self.jobs[path[-1]]
        thing = {"jobs": job.manifest, "poddisruptionbudgets": job.budget}[kind]
        if method == "PATCH":
            body = copy.deepcopy(body)
            if body["metadata"].pop("resourceVersion") != thing["metadata"]["resourceVersion"]:
                raise error("409 the object has been modified")
            if kind == "jobs" and "spec" in body:
                self._change_job(error, job, body)
            merge(thing, body)
            self.write(thing)
        return thing

    def _change_job(self, error: Callable[[str], Exception], job: IndexedJob, body: dict[str, Any]) -> None:
        before = job.manifest["spec"]
        spec = {**before, **body["spec"]}
        if before["completions"] != spec["completions"] != spec["parallelism"]:
            raise error("422 completions: Invalid value")
        size = 0 if spec["suspend"] else spec["parallelism"]
        if job.size > size and (size or job is not self.own):
            self.shrinks(job, size)
        if spec["suspend"] and not before["suspend"] and job is self.own:
            suspended, self.suspended = self.suspended, lambda: None
            suspended()
        body["metadata"]["managedFields"] = [{"manager": "helm"}, {"manager": "minicluster-agent"}]

    def write(self, thing: dict[str, Any]) -> None:
        """Note that an object was written."""
        thing["metadata"]["resourceVersion"] = str(int(thing["metadata"]["resourceVersion"]) + 1)
        self.reconcile_soon()

    def job_of(self, rank: int) -> IndexedJob:
        """Return the Job whose pod has a rank."""
        return next(job for job in self.jobs.values() if rank in job.ranks)

    def may_evict(self, rank: int) -> bool:
        """Tell whether the disruption budget lets a pod go."""
        job = self.job_of(rank)
        selector = job.budget["spec"].get("selector") or {}
        held = [value for each in selector.get("matchExpressions", []) for value in each["values"]]
        return str(rank - job.ranks.start) not in held

    # the Job controller

    def reconcile_soon(self) -> None:
        """Let the Job controller look, soon."""
        if not self._is_reconciling:
            self._is_reconciling = True
            self.loop.at(self.random.uniform(0.05, 1.0), self._reconcile)

    def _reconcile(self) -> None:
        self._is_reconciling = False
        for job in self.jobs.values():
            for rank in job.ranks[: job.size]:
                if rank not in self.pods:
                    self.pods[rank] = pod = Pod(rank, is_gated=self.kueue is not None)
                    if not pod.is_gated:
                        self._schedule(pod)
            if self.random.random() < 0.3:
                # its status
                metadata = job.manifest["metadata"]
                metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        for rank, pod in list(self.pods.items()):
            if not self.job_of(rank).has(rank):
                self.stop(pod)

    def _schedule(self, pod: Pod) -> None:
        slow = self.random.random() < 0.1
        self._later(20.0 if slow else 1.0, 60.0 if slow else 4.0, pod, self._start)

    def ungate(self, job: IndexedJob) -> None:
        """Let the pods of a Job start."""
        for rank in job.ranks:
            if (pod := self.pods.get(rank)) and pod.is_gated:
                pod.is_gated = False
                self._schedule(pod)

    # the kubelets

    def _later(self, least: float, most: float, pod: Pod, event: Callable[[Pod], None]) -> None:
        self.loop.at(
            self.random.uniform(least, most),
            lambda: event(pod) if self.pods.get(pod.index) is pod and not pod.is_lost else None,
        )

    def _start(self, pod: Pod) -> None:
        """Start the broker of a pod, or wait for the lead."""
        if pod.leaves or pod.is_gated or pod.index in self.instance.brokers:
            return
        if pod.index == 0:
            self.instance.start(0)
            self.lead_started()
            for other in self.pods.values():
                if other is not pod:
                    self._later(0.2, 2.0, other, self._start)
        elif self.instance.is_alive and pod.index in self.instance.cores:
            self.instance.start(pod.index)
        # else: the start of the lead wakes it

    def kill(self, index: int) -> None:
        """Kill the broker of a pod: it comes back there."""
        pod = self.pods.get(index)
        if pod and not pod.leaves and index in self.instance.brokers:
            pod.deaths += 1
            self.instance.lose(index)
            self._later(0.2, min(2.0**pod.deaths, 60.0), pod, self._start)

    def terminate(self, index: int) -> None:
        """End a broker that was told to stop: of a pod that leaves it does not come back."""
        self.instance.lose(index)

    def lose(self, index: int, only: Pod | None = None) -> None:
        """Lose the machine of a pod; the pod is removed later, and another one takes its place."""
        pod = self.pods.get(index)
        if pod and not pod.is_lost and only in (None, pod):
            pod.is_lost = True
            if pod.program:
                pod.program.kill()
            self.instance.lose(index, silent=True)
            self.loop.at(LOST_NODE_SECONDS, lambda: self._remove(pod))

    def lose_workers(self) -> None:
        """Lose the machines of all pods but the lead's."""
        for index in [index for index in self.pods if index]:
            self.lose(index)

    def stop(self, pod: Pod) -> None:
        """Tell a pod to stop: it leaves within its grace period."""
        if pod.leaves or pod.is_lost:
            return
        pod.leaves = True
        if pod.index in self.instance.brokers:
            index = pod.index
            pod.program = Process(self.loop, lambda: self.leave(index), lambda: self._end(pod))
            self.loop.at(GRACE_SECONDS, lambda: self._end(pod))
        else:
            self._later(0.0, 1.0, pod, self._remove)

    def _end(self, pod: Pod) -> None:
        """End what a pod runs, and the pod a moment later."""
        if self.pods.get(pod.index) is not pod or pod.is_lost:
            return
        if pod.program:
            pod.program.kill()
        self.instance.lose(pod.index)
        self._later(0.05, 0.5, pod, self._remove)

    def _remove(self, pod: Pod) -> None:
        if self.pods.get(pod.index) is pod:
            del self.pods[pod.index]
            self.reconcile_soon()

    def end(self) -> None:
        """End all programs."""
        for pod in self.pods.values():
            if pod.program:
                pod.program.kill()
