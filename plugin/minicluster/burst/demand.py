"""What the root's queue needs of its bursts: a program on the lead reports it (lead/sent/burst_need.py).

A thread talks to the lead. If the conversation breaks, or the lead is replaced, the need is unknown until a lead
answers again.
"""

import math
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from minicluster.cluster.job import end_of
from minicluster.cluster.lead import Lead
from minicluster.cluster.pods import size_of
from minicluster.console import streams
from minicluster.errors import BurstError, MiniClusterError
from minicluster.flux import parse_idset
from minicluster.kube.outage import RETRY_SECONDS
from minicluster.kube.port import KubePort
from minicluster.lead.ask import Conversation, talk
from minicluster.render.model import MiniClusterModel
from minicluster.render.resources import ranked
from minicluster.status.lookup import Cluster
from minicluster.status.reporter import describe, ended, see


class Offer(NamedTuple):
    """Hosts of consecutive ranks that the queue may use."""

    first: int
    registered: int
    size: int = 0  #: hosts that run or start
    most: int = 0  #: the most hosts that it may have


class RootJob(NamedTuple):
    """A Job of a root: that of its own hosts, or of a group."""

    name: str
    ranks: range  #: of all its hosts
    most: int = 0  #: hosts that the autoscaler may make; 0 without one
    priority: int = 0  #: those with a larger one grow first

    def offer(self, job: Mapping[str, Any]) -> Offer:
        """Return what it has, and may add by itself, by the Job in Kubernetes; none when that has ended or is gone."""
        if end_of(self.name, job):
            return Offer(self.ranks.start, len(self.ranks))
        # nobody knows when one that is held back starts
        size = 0 if job["spec"].get("suspend") else size_of(job)
        return Offer(self.ranks.start, len(self.ranks), size, max(size, self.most))


def root_jobs(root: MiniClusterModel) -> list[RootJob]:
    """Return the Jobs of a root, in the order in which its autoscaler lets them grow."""
    own, *others = (ranks for ranks, _ in ranked(root))
    root_pools = [RootJob(root.name, own, int(root.autoscaling.get("max", 0)))]
    for group, ranks in zip(root.groups, others, strict=False):
        limits = group.autoscaling
        root_pools.append(RootJob(f"{root.name}-{group.name}", ranks, limits.get("max", 0), limits.get("priority", 0)))
    return sorted(root_pools, key=lambda job: -job.priority)


#: Seconds until the next attempt at most; seconds until the root's Job is read again
MOST_RETRY_SECONDS, JOB_SECONDS = 10.0, 30.0


class BurstNeed(NamedTuple):
    """What the queue needs of a burst."""

    need: int  #: hosts that running jobs use, or waiting jobs would use
    held: int  #: hosts that running jobs use
    since: float  #: when a job that needs more hosts than the size began to wait, by our clock; infinite without one
    online: frozenset[int]  #: indexes of the hosts that have joined
    waiting: int  #: jobs of the whole queue


class Demand:
    """Tells the lead what each burst offers, and knows what the queue needs of it."""

    def __init__(self, root: MiniClusterModel, kubernetes: KubePort, bursts: Mapping[str, Offer]) -> None:
        self.error: Exception | None = None  #: why it has ended: with the root, or by a bug
        self.has_root_ended = False  #: whether the root was there, and its bursts are to go
        self._has_lived = False  #: whether the root was seen alive
        self._root, self._kubernetes, self._jobs = root, kubernetes, root_jobs(root)
        self._offers = {**{job.name: job.offer({}) for job in self._jobs}, **bursts}
        self._number = 0  #: number of the newest offers
        self._numbers = dict.fromkeys(self._offers, 0)  #: by burst: number of the offers that last changed its own
        self._answers: dict[str, BurstNeed] = {}
        self._answered = -1
        self.changes = 0  #: how often the answers changed
        self._changed = threading.Condition()
        self.stopped = threading.Event()  #: set when it has ended
        self._conversation: Conversation | None = None
        self._is_begun = False
        self._said = ""
        self.thread = threading.Thread(target=self._run, name="minicluster-demand", daemon=True)

    def stop(self, error: Exception | None = None) -> None:
        """End the thread, and wake all that wait."""
        with self._changed:
            self.error = self.error or error
            self.stopped.set()
            if self._conversation:
                self._conversation.channel.abort()
            self._changed.notify_all()

    @property
    def is_known(self) -> bool:
        """Whether a lead has answered, and may answer again."""
        return self._answered >= 0

    def offer(self, name: str, offer: Offer) -> None:
        """Say what a burst offers, or a Job of the root."""
        with self._changed:
            if self._offers[name] != offer:
                self._offers[name] = offer
                self._number += 1
                self._numbers[name] = self._number
                self._send()

    def answer(self, name: str) -> BurstNeed | None:
        """Return what the queue needs of a burst; None while there is no answer to its newest offer."""
        with self._changed:
            return self._answers.get(name) if self._answered >= self._numbers[name] else None

    def wait(self, seconds: float, seen: int) -> None:
        """Wait until ``changes`` is no longer ``seen``, it has stopped, or the seconds are over."""
        with self._changed:
            self._changed.wait_for(lambda: self.changes != seen or self.stopped.is_set(), seconds)

    def _send(self) -> None:
        """Send the offers, if there is a conversation."""
        groups, root = [offer._asdict() for offer in self._offers.values()], len(self._jobs)
        if self._conversation and self._is_begun:
            self._conversation.say([{"number": self._number, "root": groups[:root], "bursts": groups[root:]}])

    def _run(self) -> None:
        """Talk to one lead after the other, until the root has ended."""
        retry = RETRY_SECONDS
        while not (self.stopped.is_set() or self.has_root_ended):
            try:
                for answer in self._talk():
                    if self.stopped.is_set():
                        return
                    self._take(answer)
                    retry, self._said = RETRY_SECONDS, ""
            except MiniClusterError as error:
                if str(error) != self._said and not (self.stopped.is_set() or self.has_root_ended):
                    streams.say(f"what the queue needs is not known: {error}")
                self._said = str(error)
            except Exception as error:
                self.stop(error)
            with self._changed:
                self._answers, self._answered = {}, -1
                self._tell()
            self.stopped.wait(retry)
            retry = min(2 * retry, MOST_RETRY_SECONDS)

    def _take(self, answer: Mapping[str, Any]) -> None:
        now = time.monotonic()
        with self._changed:
            for name, group in zip(self._offers, answer["groups"], strict=True):
                since = now - group["age"] if group["age"] else math.inf
                online = frozenset(parse_idset(group["online"]))
                self._answers[name] = BurstNeed(group["need"], group["held"], since, online, answer["waiting"])
            self._answered = answer["number"]
            self._tell()

    def _tell(self) -> None:
        self.changes += 1
        self._changed.notify_all()

    def _talk(self) -> Iterator[dict[str, Any]]:
        """Yield the answers of the present lead. Raises MiniClusterError when the conversation ends."""
        lead, read = self._find_lead(), time.monotonic()
        with talk(self._kubernetes, lead, "burst_need") as conversation:
            try:
                with self._changed:
                    self._conversation = conversation
                conversation.begin(None, self.stopped)
                with self._changed:
                    self._is_begun = True
                    self._send()
                while not self.stopped.is_set():
                    yield from conversation.replies()
                    if time.monotonic() - read > JOB_SECONDS:
                        self._find_lead()
                        read = time.monotonic()
            finally:
                with self._changed:  # another thread that offers must not write to a channel that is being closed
                    self._conversation, self._is_begun = None, False

    def _find_lead(self) -> Lead:
        """Return the lead, and offer what the root has. Raises BurstError when it has ended, or can't be asked."""
        name, kubernetes = self._root.name, self._kubernetes
        cluster = Cluster(kubernetes, name)
        job, lead = cluster.read_job(), cluster.read_lead()
        end = end_of(name, job)
        if end and (job or self._has_lived):
            self.has_root_ended, self.error = True, BurstError(f"{ended(name, end, lead)}: its bursts are removed")
        elif end:
            self.stop(BurstError(f"{ended(name, end, lead)}; helm uninstall removes what is left of its bursts"))
        self._has_lived = not end
        if end or not lead or not lead.is_ready:
            state = end or describe(kubernetes, see(kubernetes, name, job, lead))
            raise BurstError(f"{name} is {': '.join(filter(None, state))}")
        for one in self._jobs:
            self.offer(one.name, one.offer(job if one.name == name else kubernetes.get("job", one.name)))
        return lead
