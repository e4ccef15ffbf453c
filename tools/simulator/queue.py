"""A model of Flux's queue: jobs that wait, run and end; it survives its lead, as on a claim.

Jobs are allocated whole cores, first come, first served. What Flux tells of jobs lags behind, by times from the seed.
Facts: flux-core 0.88; RFC 21.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from random import Random
from typing import Any

from minicluster.flux import to_idset

from tools.simulator.broker import Broker, Service
from tools.simulator.clock import EPOCH_SECONDS, Loop
from tools.simulator.jobs import FILTERS, Fates, Job, exception, own_attributes, wanted

#: How long a job's last moments take, and how long a job lives on after SIGTERM
CLEANUP_SECONDS, TERM_SECONDS = 0.3, 8.0
#: By how much job-list lags behind at times
LATE_SECONDS, LATE_PART = (0.05, 3.0), 0.03
#: After which Flux forgets a job that has ended
PURGE_SECONDS = 3600.0


class JobQueue:
    """The queue of a MiniCluster, and what it knows of the brokers."""

    def __init__(self, loop: Loop, random: Random, groups: Mapping[str, range], cores: int) -> None:
        self.loop, self.random, self.groups = loop, random, groups
        self.cores = {rank: cores for ranks in groups.values() for rank in ranks}
        self.brokers: dict[int, Broker] = {}
        self.online: set[int] = set()  #: as the resource module knows it
        self.drained: dict[int, tuple[str, float]] = {}
        self.jobs: dict[int, Job] = {}  #: those that Flux has not purged
        self.active: dict[int, Job] = {}  #: those that have not ended
        self.newest = 0
        self.kvs: dict[str, Any] = {}
        self.generation, self.starttime = 0, 0.0
        self.is_stopped, self.stop_reason = False, ""
        self.ended = self.longest_away = 0.0  #: when the last lead ended, and for how long there was none, at most
        self.service: Service | None = None  #: that of requeue.py
        self.changed: Callable[[str], None] = lambda _: None  #: is told of `jobs`, `nodes`, `size`, `exceptions`
        self.drains: Callable[[], None] = lambda: None  #: is told when somebody is about to drain a rank
        self.fates = Fates()
        self.journals: list[Callable[[int, dict[str, Any]], None]] = []  #: who hears the events of all jobs
        self.clients: dict[str, Callable[[], None]] = {}  #: what ends the programs of clients
        self.lead_ended: Callable[[], None] = lambda: None
        self.given, self.backlog = 0, 0  #: jobs that it got from clients, and those that it still looks at
        self._is_scheduling = False
        self.listed_at = 0.0  #: when job-list knows all that has happened

    @property
    def is_alive(self) -> bool:
        """Whether there is a lead."""
        return 0 in self.brokers

    def if_lives(self, generation: int, event: Callable[[], None]) -> None:
        """Let something happen if that life of the instance goes on."""
        if self.is_alive and generation == self.generation:
            event()

    def submit(self, jobspec: Mapping[str, Any], urgency: int, work: float, fails: int = 0) -> int:
        """Take a job, and return its id. Its work fails as often as it is told before it succeeds."""
        self.newest = number = self.newest + 1
        own = own_attributes(jobspec)
        before = self.jobs.get(int(own["continues"][1:])) if "continues" in own else None
        lineage, work = (before.lineage, before.work) if before else (number, work)
        job = Job(number, dict(jobspec), urgency, lineage, work, self.loop.now)
        self.fates.submit(job, before, fails)
        for each in jobspec["attributes"]["system"].get("dependencies") or []:
            if each["scheme"] == "afternotok":
                job.after = int(each["value"][1:])
                job.fields["dependencies"] = [f"after-failure={each['value']}"]
            elif each["scheme"] == "begin-time":
                job.begins = float(each["value"]) - EPOCH_SECONDS
        self.jobs[number] = self.active[number] = job
        self.list(job)
        self.later(0.0, 0.05, lambda: self.release(job))
        return number

    def release(self, job: Job) -> None:
        """Let a job wait for nodes, once nothing else is in its way."""
        if job.state != "depend" or not self.is_alive:
            return
        if job.after:
            before = self.jobs.get(job.after)
            if before and before.state == "completed":
                self.end(job, "canceled")
            if before and before.state in {*FILTERS["active"], "completed"}:
                return
        if job.begins > self.loop.now:
            self.loop.at(job.begins - self.loop.now, lambda: self.release(job))
            return
        job.state = "sched"
        job.fields |= {"priority": job.urgency, "t_depend": EPOCH_SECONDS + self.loop.now}
        self.list(job)
        self.tell("jobs")
        self.schedule()

    def schedule(self) -> None:
        """Let the scheduler look, soon."""
        if not self._is_scheduling:
            self._is_scheduling = True
            self.later(0.01, 0.1, self._schedule)

    def _schedule(self) -> None:
        self._is_scheduling = False
        if not self.is_alive or self.is_stopped:
            return
        free = self.free()
        waiting = [job for job in self.active.values() if job.state == "sched" and job.urgency]
        for job in sorted(waiting, key=lambda job: (-job.urgency, job.number)):
            nodes, cores = wanted(job.jobspec)
            may = self.allowed(job.jobspec["attributes"]["system"].get("constraints"))
            ranks = [rank for rank, count in sorted(free.items()) if count >= cores and rank in may][:nodes]
            if len(ranks) < nodes:
                return
            for rank in ranks:
                free[rank] -= cores
            self._run(job, ranks)

    def allowed(self, constraints: Mapping[str, Any] | None) -> Collection[int]:
        """Return the ranks that a job's constraints allow: the property of a node is its group's name."""
        return self.groups[constraints["properties"][0]] if constraints else self.cores

    def free(self) -> dict[int, int]:
        """Return the free cores of the ranks that may get jobs."""
        free = {rank: self.cores[rank] for rank in self.online if rank not in self.drained and rank in self.cores}
        for job in self.active.values():
            for rank in job.ranks:
                if rank in free:
                    free[rank] -= wanted(job.jobspec)[1]
        return free

    def _run(self, job: Job, ranks: list[int]) -> None:
        beside = [one for one in self.active.values() if one.lineage == job.lineage and one.state == "run"]
        assert not beside, f"job {job.number} runs beside {beside[0].number}: it is twice the same"
        assert not self.fates.successes.get(job.lineage), f"job {job.number} runs, and was done before"
        job.state, job.ranks = "run", ranks
        job.fields |= {"ranks": to_idset(ranks), "t_run": EPOCH_SECONDS + self.loop.now}
        self.list(job)
        self.note(job, "alloc")
        self.tell("starts")
        run = job.runs
        delay = self.random.uniform(0.05, 0.3)
        self.loop.at(delay, lambda: self._begin(job, run))

    def _begin(self, job: Job, run: int) -> None:
        if (job.state, job.runs) != ("run", run):
            return
        if self.is_alive and any(rank not in self.brokers for rank in job.ranks):
            self.end_by(job, "exec", "lost contact with job shell on a node")
        elif not self.is_alive:
            return
        else:
            self.note(job, "start")
        self.loop.at(job.work, lambda: self._finish(job, run))

    def _finish(self, job: Job, run: int) -> None:
        if (job.state, job.runs) != ("run", run) or any(rank not in self.brokers for rank in job.ranks):
            return
        if self.is_alive:
            code = self.fates.end(job)
            job.fields["waitstatus"] = code << 8
            self.note(job, "finish", status=code << 8)
            self.clean(job, "failed" if code else "completed")

    def end_by(self, job: Job, kind: str, note: str) -> None:
        """End a job by an exception, unless it ends already."""
        if job.state == "cleanup":
            self.later(0.0, CLEANUP_SECONDS, lambda: self.end(job, job.result))
            return
        # the first of several counts
        job.fields = exception(kind, note) | job.fields
        self.note(job, "exception", type=kind, note=note, severity=0)
        self.clean(job, "canceled" if job.fields["exception_type"] == "cancel" else "failed")
        self.tell("exceptions")

    def clean(self, job: Job, result: str) -> None:
        """Let a job end, soon."""
        job.state, job.result = "cleanup", result
        job.runs += 1
        self.list(job)
        generation = self.generation
        self.later(0.01, CLEANUP_SECONDS, partial(self.if_lives, generation, partial(self.end, job, result)))

    def end(self, job: Job, result: str) -> None:
        """Note that a job has ended."""
        if job.state not in FILTERS["active"]:
            return
        job.state, job.ranks = result, []
        job.fields["t_inactive"] = EPOCH_SECONDS + self.loop.now
        self.list(job)
        self.note(job, "clean")
        self.tell("ends")
        del self.active[job.number]
        for other in list(self.active.values()):
            if other.after == job.number:
                self.release(other)
        self.loop.at(PURGE_SECONDS, partial(self.jobs.__delitem__, job.number))
        self.schedule()

    def list(self, job: Job) -> None:
        """Let job-list learn of a job, a moment later."""
        known = {**job.fields, "id": job.number, "state": job.state, "urgency": job.urgency}
        # in the order of the changes; but first it looks the nodes of a job up that begins to run
        self.listed_at = max(self.listed_at, self.loop.now + self._lag())
        if job.state == "run" and not job.listed_at:
            job.listed_at = self.loop.now + self._lag()
        at = max(self.listed_at, job.listed_at)
        self.loop.at(at - self.loop.now, lambda: job.listed.update(known))

    def note(self, job: Job, name: str, **context: Any) -> None:
        """Add an event to the log of a job, and tell it."""
        job.events.append({"timestamp": EPOCH_SECONDS + self.loop.now, "name": name, "context": context})
        for hear in self.journals:
            hear(job.number, job.events[-1])

    def _lag(self) -> float:
        return self.random.uniform(*(LATE_SECONDS if self.random.random() < LATE_PART else (0.0, 0.05)))

    def list_now(self, job: Job) -> None:
        """Let job-list know all of a job."""
        job.listed.update({**job.fields, "id": job.number, "state": job.state, "urgency": job.urgency})

    def used(self) -> dict[int, tuple[int, int]]:
        """Return {rank: (cores, GPUs)} that jobs hold."""
        held: dict[int, tuple[int, int]] = {}
        for job in self.active.values():
            for rank in job.ranks:
                held[rank] = (held.get(rank, (0, 0))[0] + wanted(job.jobspec)[1], 0)
        return held

    def later(self, least: float, most: float, event: Callable[[], Any]) -> None:
        """Let something happen after some seconds."""
        self.loop.at(self.random.uniform(least, most), event)

    def tell(self, what: str) -> None:
        """Tell that something has changed."""
        if what == "nodes":
            self.schedule()
        self.changed(what)
