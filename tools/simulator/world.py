"""One MiniCluster in virtual time: the shipped programs, what disturbs them, and what must hold.

While it runs: no job runs twice at once or after it was done, the agent removes no node that is busy or that a waiting
job needs, the size stays within its limits. When nothing has disturbed it for a while: each job that was taken is done,
the size is what the policy asks for, each pod is a node, and no drain of ours is left.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from tools.simulator.client import Client
from tools.simulator.clock import EPOCH_SECONDS, Loop
from tools.simulator.following import END_SECONDS, Following
from tools.simulator.handle import Handle
from tools.simulator.indexed_job import IndexedJob
from tools.simulator.instance import Instance
from tools.simulator.jobs import Load, wanted
from tools.simulator.kubelets import KILL_SECONDS, LEAVE_SECONDS
from tools.simulator.kubernetes import Kubernetes
from tools.simulator.kueue import Kueue
from tools.simulator.lead import LeadPrograms
from tools.simulator.replacing import Replacing
from tools.simulator.setting import GROUP, Setting
from tools.simulator.shipped import Folder

#: Virtual seconds without a disturbance after which all must be well
SETTLE_SECONDS = 1800.0
#: After which the agent must have seen a job that waits
SEEN_SECONDS = 30.0
#: For which the agent asks Kueue for no more after a refusal, and its look
QUOTA_SECONDS = 330.0
#: A lead that ends may take jobs for so long that its agent does not see; and for as long as its requests fail
LAST_SECONDS, UNHEARD_SECONDS = 4.0, 30.0
#: Reason of a drain by a person
BY_HAND = "by hand"


class BrokenError(AssertionError):
    """What must hold does not."""


@dataclass
class World:
    """A cluster, its programs, and the people who use it."""

    seed: int
    setting: Setting = field(default_factory=Setting)
    texts: Mapping[str, tuple[str, str]] = field(default_factory=dict)  #: changes of the programs' texts

    def __post_init__(self) -> None:
        """Begin with the least size."""
        self.loop, self.random = Loop(), Random(self.seed)  # noqa: S311 - no secret
        self.flux = Instance(self.loop, self.random, self.setting.groups, self.setting.cores)
        self.kubernetes = Kubernetes(self.loop, self.random, self.flux, self.setting.jobs())
        if self.setting.quota:
            self.kubernetes.kueue = Kueue(self.kubernetes, self.setting.quota)
        self.said: list[str] = []
        self.jobs: set[int] = set()  #: that were taken
        self.overslept = 0  #: whether it had to be woken for the last jobs that it took
        self.waiting = 0  #: submissions that nobody has taken yet
        settings, preemption = self.setting.as_read(), self.setting.preemption
        self.flux.fates.least_run = float(preemption[1]) if preemption else 0.0
        self.lead = LeadPrograms(self.kubernetes, settings, preemption, self.texts, self._say)
        self.programs = self.lead.programs
        self.replacing = Replacing(self.kubernetes, self.lead, self.setting.least) if self.setting.is_replaced else None
        self.following = Following(self.kubernetes, self.lead, self.setting) if self.setting.bursts else None
        self.client = Client(self.kubernetes, self.lead, self.wake)
        self.kubernetes.leave, self.kubernetes.lead_started = self._leave, self.lead.begin
        self.kubernetes.shrinks, self.flux.changed = self._check_shrink, self.lead.wake

    def _say(self, *words: object) -> None:
        text = " ".join(map(str, words))
        self.said.append(f"{self.loop.now:10.2f} {text}")
        if match := re.match(r"minicluster: job f(\d+) lost a node again", text):
            self.flux.fates.given_up.add(self.flux.jobs[int(match[1])].lineage)

    def _leave(self, index: int) -> None:
        """Run what a pod runs that is told to stop."""
        handle, programs = Handle(self.flux, index), self.programs
        self.loop.sleep(self.random.uniform(0.1, 1.5))
        times = programs.leave.Times(LEAVE_SECONDS, KILL_SECONDS)
        requeue = programs.requeue.Requeue(handle, "requeue", False)
        role = "worker" if index else "lead"
        programs.leave.main(handle, role, times, programs.leave.Paths(Folder(), "", ""), requeue)

    def _check_shrink(self, shrinks: IndexedJob, size: int) -> None:
        going = shrinks.ranks[size:]
        busy = sorted(rank for rank in self.flux.used() if rank in going)
        if busy and self.flux.is_alive and self.kubernetes.own.size:
            raise BrokenError(f"the size becomes {size}, and jobs run on {busy}")
        kueue, now = self.kubernetes.kueue, EPOCH_SECONDS + self.loop.now
        if (kueue and self.loop.now - kueue.refused < QUOTA_SECONDS) or self.setting.bursts:
            return
        left = {rank for job in self.kubernetes.jobs.values() for rank in job.ranks[: job.size] if rank not in going}
        by_hand = {rank for rank, (reason, _) in self.flux.drained.items() if reason == BY_HAND}
        for job in self.flux.active.values():
            nodes, _ = wanted(job.jobspec)
            allowed = {*self.flux.allowed(job.jobspec["attributes"]["system"].get("constraints"))}
            is_hit = allowed & {*going} and len(allowed & left) < nodes <= len(allowed - by_hand)
            if job.state == "sched" and job.urgency and is_hit and now - job.fields["t_depend"] > SEEN_SECONDS:
                raise BrokenError(f"the size becomes {size}, and job {job.number} waits for {nodes} nodes")

    # people

    def submit(self, load: Load) -> None:
        """Submit a job; the client wakes a cluster that sleeps, and tries until it is taken."""
        self.waiting += 1

        def attempt() -> None:
            lead = self.flux.brokers.get(0)
            if lead and lead.is_online:
                self.jobs.add(self.flux.submit(load.jobspec(), load.urgency, load.seconds, load.fails))
                self.waiting -= 1
                return
            self.wake()
            self.loop.at(1.0, attempt)

        attempt()

    def wake(self) -> None:
        """Wake a cluster that sleeps, as each command does."""
        job = self.kubernetes.job
        if self.kubernetes.own.is_there and self.programs.suspend.is_asleep(job):
            job["spec"]["suspend"] = False
            job["metadata"]["annotations"].pop(self.programs.suspend.SUSPENDED)
            self.kubernetes.write(job)

    def submit_at_suspend(self, seconds: float) -> None:
        """Submit a job some seconds after the cluster is suspended next."""
        self.kubernetes.suspended = lambda: self.loop.at(seconds, lambda: self.submit(Load()))

    def submit_at_drain(self, nodes: int) -> None:
        """Submit a job at the moment when a program is about to drain a rank next."""

        def submit() -> None:
            self.flux.drains = lambda: None
            self.submit(Load(nodes))

        self.flux.drains = submit

    def request(self, size: int) -> None:
        """Ask for a size as minicluster-scale does; 0 withdraws it."""
        if self.flux.is_alive:
            self.programs.state.request_size(Handle(self.flux, 0), size)

    def drain(self, rank: int) -> None:
        """Drain a rank as a person does, or undrain it."""
        if self.flux.drained.get(rank, ("",))[0] == BY_HAND:
            del self.flux.drained[rank]
            self.flux.schedule()
        elif rank not in self.flux.drained:
            self.flux.drained[rank] = (BY_HAND, self.loop.now)

    def evict(self, index: int) -> None:
        """Evict a pod by the API: its disruption budget may keep it."""
        pod = self.kubernetes.pods.get(index)
        if pod and self.kubernetes.may_evict(index):
            self.kubernetes.stop(pod)

    def delete(self, index: int) -> None:
        """Delete a pod."""
        if pod := self.kubernetes.pods.get(index):
            self.kubernetes.stop(pod)

    # time

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.loop.run(seconds)
        size = int(self.kubernetes.job["spec"]["completions"])
        if not self.setting.least <= size <= self.setting.most:
            raise BrokenError(f"the size is {size}, of {self.setting.least} to {self.setting.most}")
        if (size := self.kubernetes.jobs[f"mc-{GROUP}"].size if self.setting.group else 0) > self.setting.group:
            raise BrokenError(f"the size of the group is {size}, of {self.setting.group}")

    def settle(self) -> None:
        """Disturb nothing more, and check that all becomes well. Raises BrokenError."""
        kubernetes = self.kubernetes
        kubernetes.suspended = self.flux.drains = lambda: None
        kubernetes.down_until = kubernetes.error_part = kubernetes.lost_answer_part = 0.0
        if kubernetes.kueue:
            kubernetes.kueue.change(self.setting.all)
        for rank in [rank for rank, (reason, _) in self.flux.drained.items() if reason == BY_HAND]:
            self.drain(rank)
        if self.replacing and (problem := self.replacing.settle(self.run)):
            raise BrokenError(problem)
        self.run(SETTLE_SECONDS / 2)
        self._wake_for_last_jobs()
        self.request(0)
        self.run(SETTLE_SECONDS)
        self._check()
        if self.following:
            problem = self.following.settle(self.run, lambda: self.submit(Load(self.setting.most + 1)))
            if problem:
                raise BrokenError(problem)
            self._check()
            last = Load(self.setting.most + 1, seconds=END_SECONDS)
            if problem := self.following.end_root(self.run, lambda: self.flux.submit(last.jobspec(), 16, last.seconds)):
                raise BrokenError(problem)

    def _wake_for_last_jobs(self) -> None:
        """Wake a cluster that sleeps on jobs which its lead took in its last moments: nobody could see them."""
        if not self.flux.is_alive and self.flux.active:
            late = [job.number for job in self.flux.active.values() if job.taken < self.flux.ended - LAST_SECONDS]
            if late and self.kubernetes.failed < self.flux.ended - UNHEARD_SECONDS:
                raise BrokenError(f"the cluster sleeps, and jobs {late} wait")
            self.overslept += 1
            self.wake()

    def _check(self) -> None:
        if self.waiting:
            raise BrokenError(f"{self.waiting} submissions were never taken")
        if unknown := self.client.unknown():
            raise BrokenError(f"a client does not know, or was told wrongly: {unknown}")
        undone = [
            job for job in sorted(self.jobs | {*self.flux.fates.keys.values()}) if not self.flux.fates.is_known(job)
        ]
        if undone:
            raise BrokenError(f"jobs {undone} were taken and never done")
        job = self.kubernetes.job
        if self.setting.suspend:
            if not job["spec"]["suspend"]:
                raise BrokenError("an idle cluster was not suspended")
            return
        if (size := self.kubernetes.own.size) != self.setting.least:
            raise BrokenError(f"the size of an idle cluster is {size}, not {self.setting.least}")
        if more := [name for name, job in self.kubernetes.jobs.items() if job is not self.kubernetes.own and job.size]:
            raise BrokenError(f"the idle cluster has pods of {more}")
        if self.following and (left := self.following.left()):
            raise BrokenError(f"nobody needs a burst, and there is the {', '.join(left)}")
        missing = [rank for rank in range(size) if rank not in self.flux.online]
        drained = [rank for rank in self.flux.drained if rank < size]
        if missing or drained:
            raise BrokenError(f"of {size} ranks {missing} are no nodes, and {drained} are drained: {self.flux.drained}")

    def close(self) -> None:
        """End the programs that still run."""
        self.lead.end()
        self.client.end()
        for other in (self.replacing, self.following):
            if other:
                other.end()
        self.kubernetes.end()
