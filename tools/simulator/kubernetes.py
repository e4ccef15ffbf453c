"""A model of Kubernetes for the Indexed Jobs of one MiniCluster and its bursts: API server and Job controller.

Times are from the seed.
"""

import copy
import math
import pickle
import urllib.parse
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from tools.simulator.clock import Loop
from tools.simulator.indexed_job import IndexedJob, merge
from tools.simulator.instance import Instance
from tools.simulator.kubelets import Kubelets
from tools.simulator.kueue import Kueue, pods_of

#: How long a request to the API server takes, and its answer; and one that fails
REQUEST_SECONDS, TIME_OUT_SECONDS = (0.002, 0.2), (0.01, 10.0)


class Kubernetes(Kubelets):
    """The API server with the Jobs, their controller and their pods."""

    def __init__(self, loop: Loop, random: Random, instance: Instance, jobs: Mapping[str, IndexedJob]) -> None:
        super().__init__(loop, random, instance)
        self.jobs, self.own = jobs, jobs["mc"]
        self.failed = -math.inf  #: when a request has failed last
        self.down_until, self.error_part, self.lost_answer_part = 0.0, 0.0, 0.0
        self.shrinks: Callable[[IndexedJob, int], None] = lambda *_: None  #: is asked before a Job gets smaller
        self.suspended: Callable[[], None] = lambda: None
        self.kueue: Kueue | None = None
        self._is_reconciling = False
        self.reconcile_soon()

    # the API server

    def call(self, error: Callable[[str], Exception], method: str, path: str, body: Any) -> Any:
        """Answer a request of the agent, or raise what ``error`` makes of a text."""
        url = urllib.parse.urlsplit(path)

        def answer() -> Any:
            if url.path.endswith("/pods"):
                return {"items": pods_of(self, self.jobs[url.query.rpartition("=")[2].rpartition("%3D")[2]])}
            return self._answer(error, method, url.path.rsplit("/", maxsplit=2), body)

        return self.request(lambda why: error(f"{method} {path}: {why}"), answer, changes=method != "GET")

    def request(self, error: Callable[[str], Exception], answer: Callable[[], Any], *, changes: bool) -> Any:
        """Answer a request of anybody, which may have no answer; and what ``changes`` something, none that arrives."""
        if self.loop.now < self.down_until or self.random.random() < self.error_part:
            self.failed = self.loop.now
            self._wait(*TIME_OUT_SECONDS)
            raise error("timed out")
        self._wait(*REQUEST_SECONDS)
        answered = answer()
        if changes and self.random.random() < self.lost_answer_part:
            self.failed = self.loop.now
            self._wait(*TIME_OUT_SECONDS)
            raise error("the answer was lost")
        answered = pickle.loads(pickle.dumps(answered))  # noqa: S301 - a copy, five times as fast as deepcopy
        self._wait(*REQUEST_SECONDS)
        return answered

    def _wait(self, least: float, most: float) -> None:
        if self.loop.running:
            self.loop.sleep(self.random.uniform(least, most))

    def _answer(self, error: Callable[[str], Exception], method: str, path: list[str], body: Any) -> Any:
        if path[-1] == "events":
            return {}
        kind, job = path[-2], self.jobs[path[-1]]
        if not job.is_there:
            raise error(f"404 there is no {path[-1]}")
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

    def delete(self, job: IndexedJob) -> None:
        """Delete a Job, which goes after its pods."""
        if job.is_there and not job.is_leaving:
            job.manifest["metadata"]["deletionTimestamp"] = "now"
            self.write(job.manifest)

    @property
    def job(self) -> dict[str, Any]:
        """The cluster's own Job."""
        return self.own.manifest

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
                    self.make(rank, job, is_gated=self.kueue is not None)
            job.is_there = job.is_there and not (job.is_leaving and self.pods.keys().isdisjoint(job.ranks))
            if job.is_there and self.random.random() < 0.3:
                # its status
                metadata = job.manifest["metadata"]
                metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        for rank, pod in list(self.pods.items()):
            if not self.job_of(rank).has(rank):
                self.stop(pod)
