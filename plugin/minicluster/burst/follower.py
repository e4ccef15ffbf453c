"""One burst that follows the queue: a thread that installs, resizes and removes it.

When it grows and shrinks, `Windows` says: pure functions of what the queue needs, over time in seconds of a monotonic
clock.
"""

import math
import threading
import time
from dataclasses import dataclass, field
from typing import NamedTuple

from minicluster.burst import install, removal, root
from minicluster.burst.demand import JOB_SECONDS, BurstNeed, Demand, Offer
from minicluster.burst.install import How
from minicluster.burst.root import BurstRequest
from minicluster.console import streams
from minicluster.console.messages import counted
from minicluster.errors import MiniClusterError
from minicluster.flux import to_idset
from minicluster.kube.names import OUR_PREFIX
from minicluster.release import revisions

#: Seconds for which a burst that failed is left alone, at first and at most
REST_SECONDS, MOST_REST_SECONDS = 15.0, 900.0


@dataclass(frozen=True)
class BurstLimits:
    """Limits of a burst's size, and its windows in seconds."""

    min: int
    max: int
    backlog: float  #: to grow, a job that needs more hosts must have waited this long
    idle: float  #: to shrink, fewer hosts must have been enough this long


@dataclass(frozen=True)
class Seen:
    """What the queue needs of a burst at one time."""

    now: float
    need: int  #: hosts that running jobs use, or waiting jobs would use
    held: int  #: hosts that running jobs use
    age: float = 0.0  #: seconds that a job which needs more hosts has waited; 0 without one


class BurstDecision(NamedTuple):
    """The size that a burst should have now."""

    size: int
    wait: float = math.inf  #: seconds after which this may change although nothing else does


@dataclass
class Windows:
    """Remembers what was needed. After a restart only the windows begin again."""

    #: When the need changed, and to how many hosts; the first entry is the need at the begin of the idle window
    past: list[tuple[float, int]] = field(default_factory=list)

    def forget(self) -> None:
        """Begin anew, because the need was unknown for a while."""
        self.past.clear()

    def decide(self, policy: BurstLimits, seen: Seen, size: int) -> BurstDecision:
        """Return the size for a burst that has ``size`` hosts.

        It is between ``min`` and ``max``, but a burst that is larger already keeps the hosts that jobs have.
        """
        largest = self._largest(policy, seen)
        if size < policy.min:
            return BurstDecision(policy.min)
        wanted = min(seen.need, policy.max)
        if wanted > size:
            left = policy.backlog - seen.age
            return BurstDecision(size, left) if left > 0 else BurstDecision(wanted)
        least = max(min(largest, policy.max), policy.min, seen.held)
        if least < size and seen.now - self.past[0][0] >= policy.idle:
            return BurstDecision(least)
        return BurstDecision(size)

    def _largest(self, policy: BurstLimits, seen: Seen) -> int:
        """Note what is needed, and return the most that was needed within the idle window."""
        if not self.past or self.past[-1][1] != seen.need:
            self.past.append((seen.now, seen.need))
        while len(self.past) > 1 and self.past[1][0] <= seen.now - policy.idle:
            self.past.pop(0)
        return max(need for _, need in self.past)


class Follower:
    """Brings a burst to the size that the queue needs.

    It keeps no state: the size is in the burst's Job, and what was being drained is in Flux.
    """

    def __init__(self, request: BurstRequest, policy: BurstLimits, how: How, demand: Demand) -> None:
        self.request, self.policy, self.how, self.demand = request, policy, how, demand
        self.name, self.thread = request.burst.name, threading.Thread(target=self._run, daemon=True)
        self._windows = Windows()
        self._is_clean = False  #: whether no shrink is half done, by this process or a former one
        self._size: int | None = None  #: of its Job; None while that isn't known
        self._looked = -math.inf  #: when that was read
        self._rest, self._rested = REST_SECONDS, -math.inf  #: how long it is left alone next; when that last ended
        self._missing = math.inf  #: since when hosts are missing in Flux
        self._left = math.inf  #: since when it has no Job, and is not gone
        self._is_late = False  #: whether its hosts count only once they have joined
        self._why = f"{self.name} is scaling down"

    def _run(self) -> None:
        """Follow until the demand has stopped; a bug stops it."""
        try:
            self._follow()
        except Exception as error:
            self.demand.stop(error)

    def _follow(self) -> None:
        """Step by step until the demand has stopped, or the root has ended and the burst is removed."""
        while not self.demand.stopped.is_set():
            seen = self.demand.changes
            try:
                if self.demand.has_root_ended:
                    removal.end_with_root(self.request, self.how.seconds)
                    return
                self.demand.wait(self._step(time.monotonic()), seen)
            except MiniClusterError as error:
                self._leave_alone(str(error))

    def _leave_alone(self, why: str) -> None:
        """Leave the burst alone for a while, so that others give what the queue needs."""
        if time.monotonic() - self._rested > MOST_REST_SECONDS:
            self._rest = REST_SECONDS
        streams.say(f"{self.name}: {why}: the next attempt is in {self._rest:g} s")
        self._size, self._is_clean = None, False
        self._windows.forget()
        self._offer()
        self.demand.stopped.wait(self._rest)
        self._rest, self._rested = min(2 * self._rest, MOST_REST_SECONDS), time.monotonic()

    def _step(self, now: float) -> float:
        """Do what is due now; return the seconds until the next step. Raises MiniClusterError."""
        if self._size is None or now - self._looked > JOB_SECONDS:
            self._look()
        self._offer()
        answer = self.demand.answer(self.name)
        if answer is None or self._size is None:
            if not self.demand.is_known:
                self._windows.forget()
            return JOB_SECONDS
        if not self._is_clean:
            self.request.undrain(OUR_PREFIX + self._why, range(self._size))
            self._is_clean = True
        wait = self._check_joined(answer, now)
        age = now - answer.since if answer.since < math.inf else 0.0
        decision = self._windows.decide(self.policy, Seen(now, answer.need, answer.held, age), self._size)
        leaving = {index for index in answer.online if index >= self._size}
        if decision.size > self._size and not leaving:
            jobs = counted(answer.waiting, "job waits", "jobs wait")
            self._grow(decision.size, "its least size" if decision.size <= self.policy.min else jobs)
        elif decision.size < self._size:
            self._shrink(decision.size)
        return min(wait, decision.wait, JOB_SECONDS)

    def _offer(self) -> None:
        """Tell the queue which hosts it may have; those that have joined count in any case."""
        burst, size = self.request.burst, self._size
        if size is None or self._is_late:
            self.demand.offer(self.name, Offer(burst.first, burst.size))
        else:
            self.demand.offer(self.name, Offer(burst.first, burst.size, size, max(size, self.policy.max)))

    def _look(self) -> None:
        """Read the size; remove what has ended, or what an interrupted change has left. Raises MiniClusterError."""
        job, now = self.request.target.get("job", self.name), time.monotonic()
        if job:
            removal.clear(self.request, job, self.how.seconds, is_new=not self._is_clean)
        self._left = min(self._left, now) if not job and removal.is_left(self.request) else math.inf
        if now >= self._left + revisions.KILLED_SECONDS:
            streams.say(f"{self.name}: removing what an interrupted change has left")
            removal.remove_rest(self.request, self.how.seconds)
        size = min(int(job.get("spec", {}).get("completions", 0)), self.request.burst.size)
        if self._size != size:
            self._missing = math.inf
        self._size, self._looked = size, now

    def _check_joined(self, answer: BurstNeed, now: float) -> float:
        """Say when all hosts have joined. Hosts that don't join in time count only once they have joined.

        Return the seconds until the next check.
        """
        missing = sorted(set(range(self._size or 0)) - answer.online)
        if not missing:
            if self._missing < math.inf and self._size:
                streams.say(f"{self.name} has joined: ranks {self.request.burst.ranks(self._size)}")
                self._rest = REST_SECONDS
            self._missing, self._is_late = math.inf, False
            return math.inf
        if self._is_late:
            return math.inf
        self._missing = min(self._missing, now)
        left = self._missing + self.how.seconds - now
        if left > 0:
            return left
        self._is_late = True
        self._offer()
        why = install.problem(self.request.target, self.name, missing[0])
        streams.say(
            f"{self.name}: {len(missing)} of {self._size} hosts have not joined within {self.how.seconds:g} s, such as "
            f"index {missing[0]}, and don't count until they have: {why}"
        )
        return math.inf

    def _grow(self, size: int, why: str) -> None:
        """Install the burst, or make it larger. Raises MiniClusterError."""
        old, self._size = self._size or 0, size
        self._say(old, why)
        self._offer()
        made, lead = install.prepare(self.request, self.how.address, size)
        install.install(self.request, made, root.find_certificate(self.request, lead), self.how, old)
        self._missing = time.monotonic()

    def _shrink(self, size: int) -> None:
        """Make the burst smaller, or remove it, unless a job runs where it shrinks. Raises MiniClusterError."""
        old, request, burst = self._size or 0, self.request, self.request.burst
        # all registered ranks above the size: somebody may have made the burst larger meanwhile
        ranks = range(burst.first + size, burst.first + burst.size)
        self._size = size
        self._offer()
        request.drain(to_idset(ranks), self._why)
        if request.busy() & set(ranks):
            request.undrain(OUR_PREFIX + self._why, range(burst.size))
            self._size = old
            self._windows.forget()
            streams.say(f"{self.name}: {old} hosts stay: a job started on one that was about to go")
            return
        self._say(old, f"no job needed more for {self.policy.idle:g} s")
        if size:
            made, _ = install.prepare(request, self.how.address, size)
            install.upgrade(request, made, self.how)
        else:
            removal.uninstall(request, self.how.seconds)

    def _say(self, old: int, why: str) -> None:
        streams.say(f"{self.name}: {old} -> {self._size} hosts: {why}")
