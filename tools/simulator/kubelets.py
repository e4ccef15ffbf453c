"""The kubelets of the pods of one MiniCluster, as far as they are seen: brokers start, are killed, told to stop, lost.

Times are from the seed. A pod that is told to stop runs the program that ships for it.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from tools.simulator.clock import Loop, Process
from tools.simulator.indexed_job import IndexedJob
from tools.simulator.instance import Instance

#: What a pod of ours has as its grace period, and the parts of it: jobs go on, jobs are ended
GRACE_SECONDS, LEAVE_SECONDS, KILL_SECONDS = 40.0, 20.0, 12.0
#: After which a pod on a lost machine is removed
LOST_NODE_SECONDS = 90.0


@dataclass(eq=False)
class Pod:
    """A pod of a Job."""

    index: int  #: its rank in Flux
    number: int  #: of all pods
    since: float  #: when it was made
    leaves: bool = False  #: it was told to stop
    is_lost: bool = False  #: its machine is gone
    is_gated: bool = False  #: Kueue has no quota for it yet
    runs: bool = False  #: it has begun to run
    program: Process | None = None  #: what it runs then
    deaths: int = 0


class Kubelets:
    """All pods, by their ranks in Flux."""

    def __init__(self, loop: Loop, random: Random, instance: Instance) -> None:
        self.loop, self.random, self.instance = loop, random, instance
        self.pods: dict[int, Pod] = {}
        self.leave: Callable[[int], Any] = lambda _: None  #: the program of a leaving pod, by its index
        self.lead_started: Callable[[], None] = lambda: None
        self._numbers = itertools.count()

    def reconcile_soon(self) -> None:
        """Let the Job controller look, soon."""
        raise NotImplementedError

    def make(self, rank: int, job: IndexedJob, *, is_gated: bool) -> None:
        """Make the pod of a rank; one whose image does not exist never runs."""
        self.pods[rank] = pod = Pod(rank, next(self._numbers), self.loop.now, is_gated=is_gated)
        if not is_gated and job.can_start:
            self._schedule(pod)

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
        pod.runs = True
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
