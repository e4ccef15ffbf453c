"""Stops the queue of a MiniCluster whose Job is replaced, while its jobs end; it goes on if the Job stays after all."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from minicluster.cluster.lead import Lead
from minicluster.console.streams import Say
from minicluster.console.terminal import Progress
from minicluster.errors import Interrupted, KubernetesError, StateError
from minicluster.kube.outage import RETRY_SECONDS
from minicluster.kube.port import KubePort, Object
from minicluster.lead.ask import SILENCE_SECONDS, BrokenError, Conversation, Message, start
from minicluster.lead.program import first_line
from minicluster.status.lookup import Cluster

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
        try:
            while (left := end - time.monotonic()) > 0:
                replies = self._next(left)
                if any("started" in reply for reply in replies):
                    return True
                if not has_asked:
                    # not before it has said something: see BOOT
                    self._conversation.say([{"start": True}])
                    has_asked = True
        except (KubernetesError, BrokenError):
            pass
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
    return bool(its_job) and "deletionTimestamp" not in its_job["metadata"] and _uid(its_job) == _uid(job)


def _uid(job: Object) -> str | None:
    uid: str | None = job["metadata"].get("uid")
    return uid
