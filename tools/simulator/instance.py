"""A model of Flux: brokers that join and are lost, beside the queue. Facts: flux-core 0.88; RFC 20."""

import errno
import signal
from collections.abc import Callable
from functools import partial

from tools.simulator.broker import Broker
from tools.simulator.clock import EPOCH_SECONDS
from tools.simulator.jobs import FILTERS, exception
from tools.simulator.queue import TERM_SECONDS, JobQueue

#: How long Flux looks at a job before it takes it, and when that takes long; and how long it takes it
VALIDATE_SECONDS, VALIDATE_LATE_SECONDS, VALIDATE_LATE_PART = (0.001, 0.05), (0.05, 3.0), 0.05
INGEST_SECONDS = (0.01, 0.05)
#: How the reason begins for which settle.py cancels jobs
REPLACE_NOTE = "minicluster: the MiniCluster is replaced"
#: How a job ends that ran when its lead was killed
FORMER_LEAD_NOTE = "failed to create guest ns"


class Instance(JobQueue):
    """The brokers of one MiniCluster, and its queue."""

    def start(self, rank: int) -> None:
        """Let a broker start; rank 0 begins a new life of the instance."""
        assert rank not in self.brokers, f"rank {rank} has two brokers"
        assert rank == 0 or self.is_alive, "a worker has no lead"
        self.brokers[rank] = Broker(self.loop.now)
        if rank == 0:
            self.generation += 1
            self.longest_away = max(self.longest_away, self.loop.now - self.ended)
            self.starttime, self.is_stopped, self.service = self.loop.now, False, None
            self.given = self.backlog = 0
            self.online.clear()
            for job in [job for job in self.active.values() if job.state in FILTERS["running"]]:
                self.end_by(job, "exec", FORMER_LEAD_NOTE)
            for job in self.active.values():
                self.later(0.0, 0.1, partial(self.release, job))
        self.later(0.05, 0.5, lambda: self._join(rank))

    def _join(self, rank: int) -> None:
        broker = self.brokers.get(rank)
        if not broker or broker.is_online:
            return
        if rank in self.online:
            # Flux has yet to learn of the end of the one before
            self.later(0.1, 0.3, lambda: self._join(rank))
            return
        broker.is_online = True
        self.online.add(rank)
        self.tell("nodes")

    def lose(self, rank: int, silent: bool = False) -> None:
        """Let a broker end; ``silent``: its node is gone, so nobody tells its parent."""
        lost = self.brokers.pop(rank, None)
        if lost is None:
            return
        if rank == 0:
            self.brokers.clear()
            self.service, self.ended = None, self.loop.now
            self.journals.clear()
            self.lead_ended()
            return
        first = self.random.uniform(20.0, 45.0) if silent else self.random.uniform(0.0, 1.0)
        generation = self.generation
        hit = [(job, job.runs) for job in self.active.values() if rank in job.ranks and job.state == "run"]

        def fail() -> None:
            for job, run in hit:
                if (job.state, job.runs) == ("run", run):
                    self.end_by(job, "exec", f"node failure on mc-{rank}")

        def forget() -> None:
            if lost.is_online:
                self.online.discard(rank)
                self.tell("nodes")

        for delay, event in ((first, fail), (first + self.random.uniform(0.0, 1.0), forget)):
            self.loop.at(delay, partial(self.if_lives, generation, event))

    def ingest(self, submit: Callable[[], int], tell: Callable[[int], None]) -> None:
        """Look at a job before it is submitted, as long as this lead lives, whoever waits for it; tell its id."""
        self.given += 1
        self.backlog += 1
        generation, is_late = self.generation, self.random.random() < VALIDATE_LATE_PART

        def validated() -> None:
            self.backlog -= 1
            self.later(*INGEST_SECONDS, partial(self.if_lives, generation, lambda: tell(submit())))

        seconds = VALIDATE_LATE_SECONDS if is_late else VALIDATE_SECONDS
        self.later(*seconds, partial(self.if_lives, generation, validated))

    def cancel(self, number: int, note: str) -> None:
        """Cancel a job: one that runs gets SIGTERM, and may take its time. Raises OSError for one that has ended."""
        job = self.jobs[number]
        if job.state in FILTERS["inactive"]:
            raise OSError(errno.EINVAL, "job is inactive")
        if job.state in FILTERS["pending"]:
            self.note(job, "exception", type="cancel", note=note, severity=0)
            self.end(job, "canceled")
        elif job.state == "run":
            if note.startswith(REPLACE_NOTE):
                # the exception counts, whatever its work comes to after SIGTERM (dependency-after.c)
                job.runs += 1
            run = job.runs
            if "flux.preemption" in note:
                self.fates.stop(job, self.loop.now + EPOCH_SECONDS - job.fields["t_run"])
            job.fields = exception("cancel", note) | job.fields
            self.note(job, "exception", type="cancel", note=note, severity=0)
            self.list(job)
            self.later(
                0.0,
                TERM_SECONDS,
                lambda: self.end_by(job, "cancel", note) if (job.state, job.runs) == ("run", run) else None,
            )

    def kill(self, number: int, signum: int) -> None:
        """Send a signal to the tasks of a job. Raises OSError for one that does not run."""
        job = self.jobs[number]
        if job.state != "run":
            raise OSError(errno.EINVAL, "job is not running")
        if signum == signal.SIGKILL and job.state == "run":
            self.clean(job, "failed")

    def urge(self, number: int, urgency: int) -> None:
        """Change the urgency of a job."""
        if job := self.active.get(number):
            job.urgency = job.fields["priority"] = urgency
            self.list(job)
            self.schedule()
