"""A client of the SDK: its session as it ships, and connections to the lead that may be cut at any time."""

from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any

from minicluster.errors import AwayError
from minicluster.kube import port
from minicluster.kube.outage import OUTAGE_SECONDS
from minicluster.lead import ask
from minicluster.sdk.exceptions import ApiError
from minicluster.sdk.job_future import JobFuture
from minicluster.sdk.lead import QUIET_SECONDS

from tools.simulator.channel import SENT_STAND_IN, Channel, Waker
from tools.simulator.clock import Process, threading_module
from tools.simulator.kubernetes import Kubernetes
from tools.simulator.lead import LeadPrograms
from tools.simulator.shipped import Programs


class Client:
    """A program that submits jobs by the SDK, and waits for their ends."""

    def __init__(self, kubernetes: Kubernetes, lead: LeadPrograms, wake: Callable[[], None]) -> None:
        self.kubernetes, self.lead, self.loop, self._wake = kubernetes, lead, kubernetes.loop, wake
        self.threads: list[Process] = []
        self.channel: Channel | None = None
        self.submissions: list[Any] = []
        no_fork = SimpleNamespace(keep_after_fork=lambda _: None)
        log = SimpleNamespace(warning=lambda text, *words: lead.say(text % words))
        stand_ins = {
            "time": self.loop.time_module(),
            "threading": threading_module(self.loop, self._start),
            "socket": SimpleNamespace(socketpair=self._pair, socket=object),
            "minicluster.console.signals": no_fork,
            # they have no time of their own
            "minicluster.kube.port": port,
            "minicluster.lead.ask": ask,
            **SENT_STAND_IN,
            "minicluster.sdk.lead": SimpleNamespace(LOG=log, QUIET_SECONDS=QUIET_SECONDS),
        }
        programs = Programs(stand_ins, lead.say, lead.texts)
        self._requests = getattr(programs, "minicluster.sdk.requests")
        self.session = getattr(programs, "minicluster.sdk.session").Session(self._connect)

    def _start(self, work: Callable[[], Any]) -> None:
        self.threads.append(Process(self.loop, work, lambda: None))

    def _pair(self) -> tuple[Waker, Waker]:
        waker = Waker()
        return waker, waker

    def _connect(self, *_: object) -> Channel:
        """Connect to the lead, which is woken if it sleeps. Raises AwayError."""
        self.loop.sleep(self.lead.random.uniform(0.05, 1.0))
        broker = self.lead.flux.brokers.get(0)
        if self.loop.now < self.kubernetes.down_until:
            raise AwayError("the API server does not answer")
        if not broker or not broker.is_online:
            self._wake()
            raise AwayError("there is no lead")
        self.channel = self.lead.channels[self] = Channel(self.kubernetes, self.lead)
        return self.channel

    def submit(self, attributes: dict[str, Any]) -> None:
        """Submit a job."""
        future = JobFuture(lambda: None)
        job = {"command": ["work"], "nodes": 1, "attributes": attributes}
        submission = self._requests.Submission(job, future)
        self.submissions.append(submission)
        self.session.send(submission)

    def cut(self, random: Random) -> None:
        """Cut the connection."""
        if self.channel:
            self.channel.cut(random.random() < 0.5)

    def unknown(self) -> list[str]:
        """Return the jobs whose fates the client does not know, or has been told wrongly."""
        fates, wrong = self.lead.flux.fates, []
        for each in self.submissions:
            lineage = fates.keys.get(each.key)
            error = each.future.exception(0) if each.future.done() else None
            succeeded = each.future.done() and not error
            if isinstance(error, ApiError) and self.lead.flux.longest_away >= OUTAGE_SECONDS:
                continue  # it is told that its jobs go on
            if not each.future.done() or lineage is None or succeeded != bool(fates.successes.get(lineage)):
                wrong.append(f"{each.name or each.key}: {error or ('done' if each.future.done() else 'waits')}")
        return wrong

    def end(self) -> None:
        """End all."""
        for thread in self.threads:
            thread.kill()
        if self.channel:
            self.channel.kill()
