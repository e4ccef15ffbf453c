"""Requests to remote.py: each knows its message, also after a lost connection, and reads its replies."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from minicluster.kube.names import REQUEUE_ATTRIBUTE
from minicluster.kube.outage import Age
from minicluster.sdk.exceptions import ArgumentError, JobLost, JobRefused, SdkError
from minicluster.sdk.job_future import JobFuture
from minicluster.sdk.jobs import Job, JobTable
from minicluster.sdk.outcome import finished

Message = dict[str, Any]


class LeadRequest(Protocol):
    """A request to the lead."""

    key: str

    @property
    def is_owed(self) -> bool:
        """Whether the lead has to know of it before this program ends."""

    @property
    def fate(self) -> str:
        """What a client that closes has to know of it."""

    def message(self) -> Message | None:
        """Return the message for a program that does not have this request yet; None if there is nothing to send."""

    def receive(self, reply: Mapping[str, Any]) -> list[Message] | None:
        """Read a reply; return messages to send then, or None when this was the last reply."""

    def fail(self, error: SdkError) -> None:
        """End the request with an error."""

    def leave(self) -> None:
        """End the request in a child of the process that follows it."""


class Question:
    """A question that has one answer: the value of a key of the reply."""

    is_owed, fate = False, ""

    def __init__(self, name: str, value: object, tell: Callable[[int], None] | None = None, **more: object) -> None:
        """Ask it by its name in remote.py; ``tell`` gets the numbers of nodes that are up before the answer."""
        self.key = uuid.uuid4().hex
        self.answer: Future[Any] = Future()
        self._message, self._name, self._tell = {"key": self.key, name: value, **more}, name, tell
        self._parts: list[Any] = []

    def message(self) -> Message:
        """Return the question; it has no part of its answer yet."""
        self._parts.clear()
        return self._message

    def receive(self, reply: Mapping[str, Any]) -> list[Message] | None:
        """Set the answer."""
        if "up" in reply:
            if self._tell:
                self._tell(reply["up"])
            return []
        if "more" in reply:
            self._parts += reply["jobs"]
            return []
        if "error" in reply:
            self.answer.set_exception(ArgumentError(f"{self._name}: Flux says {reply['error']}"))
        else:
            last = next(value for key, value in reply.items() if key != "key")
            self.answer.set_result([*self._parts, *last] if self._parts else last)
        return None

    def fail(self, error: SdkError) -> None:
        """Give the error."""
        if not self.answer.done():
            self.answer.set_exception(error)

    def leave(self) -> None:
        """Do nothing: who waits for the answer is no thread of the child."""


class Submission:
    """A job, from its submission to its end."""

    def __init__(self, job: Message, future: JobFuture) -> None:
        """Keep the job, as remote.py reads it, and the future that it fulfils."""
        self.key = uuid.uuid4().hex
        self.future = future
        self._job, self.name = job, ""
        self._what = job["attributes"]["system.job.name"] if "files" in job else job["command"]
        self._sent: Age | None = None
        self._is_dropped = False

    @property
    def is_owed(self) -> bool:
        """Whether Flux may not have the job, or may not know that it is cancelled."""
        if self.future.cancelled():
            return self._sent is not None and not self._is_dropped
        return not self.future.done() and not self.name

    @property
    def fate(self) -> str:
        """What becomes of the job without this client."""
        return f": job {self.name} goes on" if self.name else ": Flux may not have this job"

    def message(self) -> Message | None:
        """Return the message: submit the job, look for it if its id is unknown, or follow or cancel it by its id."""
        is_cancelled, again = self.future.cancelled(), self._sent is not None
        if is_cancelled and not again:
            return None
        self._sent = self._sent or Age()
        if self.name:
            return {"key": self.key, ("cancel" if is_cancelled else "watch"): self.name, "again": True}
        age = self._sent.seconds if again else 0
        return {"key": self.key, "submit": self._job, "again": again, "drop": is_cancelled, "age": age}

    def cancellation(self) -> list[Message]:
        """Return the message that cancels the job; none while its id is unknown."""
        return [{"key": self.key, "cancel": self.name}] if self.name else []

    def receive(self, reply: Mapping[str, Any]) -> list[Message] | None:
        """Read a reply."""
        if "id" in reply:
            self.name = reply["id"]
            self.future.accept(self.name)
            return self.cancellation() if self.future.cancelled() else []
        if "waits" in reply:
            self.future.wait_for(reply["waits"])
            return []
        if "started" in reply:
            self.future.start()
            return []
        if "cancelled" in reply:
            self._is_dropped = True
            return []
        if "end" in reply:
            self.future.end(finished(self.future.id, reply["end"]))
        elif "lost" in reply:
            return self._lose()
        else:
            self.fail(JobRefused(f"Flux doesn't take the job {self._what}: {reply['error']}"))
        return None

    def _lose(self) -> list[Message] | None:
        """Submit the job again if it may run twice; else say what is known of it."""
        if self._job["attributes"].get(REQUEUE_ATTRIBUTE) == 1 and not self.future.cancelled():
            self.name = ""
            return [message] if (message := self.message()) else None
        name = f"job {self.name}" if self.name else f"the job {self._what}"
        known = "while it ran" if self.future.running() else "so it may have run"
        self.fail(JobLost(f"{name} is lost: its lead was lost with the queue, {known}: {LOST_WAY_OUT}"))
        return None

    def fail(self, error: SdkError) -> None:
        """Give the error."""
        self.future.fail(error)

    def leave(self) -> None:
        """Leave the job to the parent."""
        self.future.leave()


class Attachment(Submission):
    """A job that is there already, whoever has submitted it, to its end."""

    def __init__(self, name: str, future: JobFuture) -> None:
        super().__init__({"command": [], "attributes": {}}, future)
        self.key, self.name, self._sent = f"any-{self.key}", name, Age()

    def receive(self, reply: Mapping[str, Any]) -> list[Message] | None:
        """Read a reply."""
        if self.future.id or not reply.keys() & {"lost", "error"}:
            return super().receive(reply)
        why = reply.get("error", "Flux has no such job")
        self.fail(JobLost(f"job {self.name}: {why}: jobs(ended=True) has all that are known"))
        return None


LOST_WAY_OUT = "look before you submit it again; state.capacity keeps the queue"


def jobs_of(answer: Sequence[Mapping[str, Any]]) -> JobTable:
    """Return the jobs of an answer, the oldest first."""
    return JobTable(sorted((Job(**job) for job in answer), key=lambda job: job.submitted))
