"""What is lost when pods of a MiniCluster go: the jobs that run on them, how long they get, and what happens then.

The queue of a MiniCluster whose Job is replaced stops while its jobs end; it goes on if the Job stays after all.
"""

import json
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, NamedTuple

from minicluster.cluster.job import recorded
from minicluster.cluster.lead import Lead
from minicluster.console.messages import counted
from minicluster.console.streams import Say, Stake
from minicluster.console.terminal import Progress
from minicluster.errors import Interrupted, KubernetesError, StateError
from minicluster.kube.outage import RETRY_SECONDS
from minicluster.kube.port import KubePort, Object
from minicluster.lead.ask import (
    SILENCE_SECONDS,
    BrokenError,
    Conversation,
    LateError,
    Message,
    SilentError,
    ask,
    program_words,
    start,
)
from minicluster.lead.program import first_line
from minicluster.render.constants import default_value
from minicluster.render.model import grace_parts
from minicluster.status.lookup import Cluster


def agree_to_all(_question: str, _stake: Stake) -> None:
    """Ask nobody."""


class JobImpact(NamedTuple):
    """What happens to jobs on pods that go."""

    time: str  #: that they get, such as 15 s
    again: str = ""  #: then to those that may run again, as of a job
    otherwise: str = ""  #: and to the others
    work: str = ""  #: and to the command of the MiniCluster, if to that something else
    waiting: str = ""  #: what jobs that wait are; "" when nothing happens to them


class AffectedJobs(NamedTuple):
    """The jobs of a MiniCluster whose pods, or some of them, go."""

    running: list[dict[str, Any]]  #: the first ones
    more: int = 0  #: how many run beside these
    waiting: int = 0
    why_unknown: str = ""


def find_affected(kube: KubePort, lead: Lead | None, on_stop: str, ranks: str = "") -> AffectedJobs:
    """Return the jobs that run on some ranks, an idset, or on all. A lead that is silent doesn't stop anything."""
    if not (lead and lead.is_running):
        return AffectedJobs([])  # no queue runs
    if not lead.is_ready:
        return AffectedJobs([], why_unknown="the lead is not ready")
    try:
        answer = json.loads(ask(kube, lead.pod, "jobs that would end", program_words(lead, on_stop, ranks)))
        return AffectedJobs(answer["running"], answer["more"], answer["waiting"])
    except (SilentError, KubernetesError) as error:
        return AffectedJobs([], why_unknown=error.reason)
    except (LateError, ValueError, LookupError) as error:
        return AffectedJobs([], why_unknown=str(error))


def tell(name: str, going: AffectedJobs, where: str, fate: JobImpact, say: Say) -> bool:
    """Say what happens to the jobs; return whether any would be lost, or put back, or is not known."""
    said = list(_lines(going, where, fate))
    for line in said:
        say(f"{name}: {line}")
    return bool(said)


def _lines(going: AffectedJobs, where: str, fate: JobImpact) -> Iterator[str]:
    if going.why_unknown:
        yield f"its jobs are not known: {going.why_unknown}; those that run on {where} have {fate.time} to end"
    count = len(going.running) + going.more
    if count:
        yield f"{counted(count, 'job runs', 'jobs run')} on {where}, with {fate.time} to end"
    for job in going.running:
        end = fate.again if job["again"] else fate.otherwise
        what = "the command of the MiniCluster" if job["is_work"] else job["name"]
        end = fate.work if fate.work and job["is_work"] else end
        yield " ".join(filter(None, (f"job {job['id']} ({what}) on {job['nodes']}", end)))
    if going.more:
        yield f"and {counted(going.more, 'more job', 'more jobs')}"
    if going.waiting and fate.waiting:
        yield f"{counted(going.waiting, 'job waits, and is', 'jobs wait, and are')} {fate.waiting}"


def of_pods(job: Object, *, keeps_queue: bool = True) -> JobImpact:
    """Return what happens to jobs on pods that are told to stop, by their Job; without the queue, if that goes too."""
    dump_seconds = int(_value(job, "archive.dumpSeconds")) if _value(job, "archive.path") else None
    seconds = grace_parts(int(_value(job, "pod.terminationGracePeriodSeconds")), dump_seconds)[0]
    if keeps_queue:
        return JobImpact(f"{seconds} s", "is then put back into the queue", "is then cancelled")
    lost = "is then cancelled"
    return JobImpact(f"{seconds} s", lost, lost, waiting="lost: the queue is not kept")


def on_stop(job: Object) -> str:
    """Return what pods that are told to stop do with jobs that outlast them: cancel, or requeue."""
    return str(_value(job, "pod.onStop"))


def keeps_queue(job: Object) -> bool:
    """Return whether the queue of a MiniCluster outlives its pods."""
    return any(_value(job, path) for path in ("state.capacity", "state.claimName", "archive.path"))


def _value(job: Object, path: str) -> Any:
    """Return an immutable value of a live MiniCluster: its Job has those that differ from the defaults."""
    return recorded(job).get(path, default_value(path))


#: How often the lead is asked, and the seconds that it has to let its queue go on
TRIES, LET_GO_SECONDS = 5, 10.0
#: Seconds in which jobs that have their nodes are listed as running, also where these may not end
LISTED_SECONDS = 1.0


class HeldQueue:
    """The queue of a MiniCluster, which the lead keeps stopped as long as somebody talks to it."""

    def __init__(self, kubernetes: KubePort, name: str, lead: Lead) -> None:
        self._kubernetes, self._name, self._lead = kubernetes, name, lead
        self._conversation: Conversation | None = None

    def settle(self, grace: float | None, say: Say) -> None:
        """Stop the queue, and wait for the jobs; put them back after the grace. Raises StateError."""
        end = None if grace is None else time.monotonic() + max(grace, LISTED_SECONDS)
        told = 0
        for reply in self._replies():
            count = reply.get("running", told)
            if reply.get("settled"):
                return
            if end is not None and time.monotonic() >= end:
                break
            if count and count != told:
                text = f"{self._name}: the queue is stopped, {count} running jobs may end; --grace limits that"
                say(Progress(text, "stopped"))
            told = count
        has_ended = False
        for reply in self._replies({"end": True}):
            has_ended = has_ended or "copies" in reply
            for job, copy in reply.get("copies", {}).items():
                say(f"{self._name}: job {job} runs again as {copy}")
            for job in reply.get("lost", ()):
                say(f"{self._name}: job {job} is cancelled: it may not run again")
            if has_ended and reply.get("settled"):
                return

    def _replies(self, message: Message | None = None) -> Iterator[dict[str, Any]]:
        """Yield what the lead says, on a new connection where one breaks; each gets the message. Raises StateError."""
        told, tries = None, 0
        while True:
            try:
                reply = self._next()
                if message and told is not self._conversation and self._conversation:
                    told = self._conversation
                    told.say([message])
                tries = 0
            except (KubernetesError, BrokenError) as error:
                self.close()
                tries += 1
                if tries == TRIES:
                    why = getattr(error, "reason", str(error))
                    raise StateError(
                        f"the lead of {self._name} does not answer, and nothing has changed: {why}; try again"
                    ) from None
                time.sleep(RETRY_SECONDS)
                continue
            yield from reply

    def _next(self, seconds: float = SILENCE_SECONDS) -> list[dict[str, Any]]:
        """Return the next replies. Raises KubernetesError, BrokenError."""
        if not self._conversation:
            self._conversation = Conversation(start(self._kubernetes, self._lead), first_line("settle"))
        return self._conversation.replies(seconds=seconds)

    def let_go(self) -> bool:
        """Let the queue go on; return whether the lead says so. It does so, too, when it misses us."""
        if not self._conversation:
            return True
        end, has_asked = time.monotonic() + LET_GO_SECONDS, False
        with suppress(KubernetesError, BrokenError):
            while (left := end - time.monotonic()) > 0:
                replies = self._next(left)
                if any("started" in reply for reply in replies):
                    return True
                if not has_asked:
                    # not before it has said something: see BOOT
                    self._conversation.say([{"start": True}])
                    has_asked = True
        return False

    def close(self) -> None:
        """End the conversation."""
        if self._conversation:
            self._conversation.channel.close()
        self._conversation = None


@contextmanager
def held_queue(cluster: Cluster, job: Object, lead: Lead | None) -> Iterator[HeldQueue | None]:
    """Give the queue of a MiniCluster, None where none runs. It goes on if the Job is there after an error.

    Raises Interrupted for Ctrl-C then.
    """
    if not (lead and lead.is_running):
        yield None
        return
    with closing(HeldQueue(cluster.kubernetes, cluster.name, lead)) as queue:
        try:
            yield queue
        except BaseException as error:
            if not _is_there(cluster, job):
                raise
            goes_on = "goes on" if queue.let_go() else "goes on as soon as the lead misses this command"
            if isinstance(error, KeyboardInterrupt):
                raise Interrupted(f"interrupted: {cluster.name} is as before, and its queue {goes_on}") from None
            raise


def _is_there(cluster: Cluster, job: Object) -> bool:
    """Return whether a Job is not removed, as far as Kubernetes says."""
    try:
        its_job = cluster.read_job()
    except KubernetesError:
        return False
    return (
        bool(its_job)
        and "deletionTimestamp" not in its_job["metadata"]
        and (its_job["metadata"].get("uid") == job["metadata"].get("uid"))
    )
