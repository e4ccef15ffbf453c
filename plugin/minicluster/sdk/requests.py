"""Requests to remote.py: each knows its message, also after a lost connection, and reads its replies."""

import uuid
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from minicluster.kube.names import REQUEUE_ATTRIBUTE
from minicluster.kube.outage import Age
from minicluster.sdk.exceptions import ArgumentError, JobLost, JobRefused, SdkError
from minicluster.sdk.job_future import JobFuture
from minicluster.sdk.jobs import Job, JobTable
from minicluster.sdk.outcome import OutputRequest, finished

Message = dict[str, Any]


class JobsQuestion:
    """The question for the jobs, whose answer may come in parts."""

    is_owed, fate = False, ""

    def __init__(self, *, ended: bool) -> None:
        """Ask for the active jobs, and the ended ones if these are wanted."""
        self.key, self._ended = uuid.uuid4().hex, ended
        self.answer: Future[JobTable] = Future()
        self._jobs: list[Job] = []

    def message(self) -> Message:
        """Return the question; it has no part of its answer yet."""
        self._jobs.clear()
        return {"key": self.key, "list": self._ended}

    def receive(self, reply: Mapping[str, Any]) -> list[Message] | None:
        """Take a part of the answer; the jobs are sorted when all have come, the oldest first."""
        if "error" in reply:
            self.answer.set_exception(ArgumentError(f"list: Flux says {reply['error']}"))
            return None
        self._jobs += (Job(**job) for job in reply["jobs"])
        if "more" in reply:
            return []
        self.answer.set_result(JobTable(sorted(self._jobs, key=lambda job: job.submitted)))
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
        self._what = job["attributes"]["system.job.name"] if "files" in job else " ".join(job["command"])
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

#: A request to the lead. Of one that ``is_owed`` the lead has to know before this program ends, and ``fate`` is what a
#: client that closes has to know. ``message`` is for a program that does not have the request yet, None if there is
#: nothing to send; ``receive`` reads a reply, and returns messages to send then, None after the last reply. ``fail``
#: ends it with an error, and ``leave`` in a child of the process that follows it
LeadRequest = JobsQuestion | Submission | OutputRequest
