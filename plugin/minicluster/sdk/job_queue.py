"""The queue of a MiniCluster: takes jobs and lists them, in a session that begins with the first request."""

import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial

from minicluster.kube.port import Channel, KubePort
from minicluster.lead import ask
from minicluster.sdk.exceptions import ArgumentError, WaitTimeoutError
from minicluster.sdk.functions import Call, FunctionFuture
from minicluster.sdk.job_future import JobFuture
from minicluster.sdk.jobs import JobOptions, JobTable, job_of
from minicluster.sdk.lead import wait_for_lead
from minicluster.sdk.outcome import OutputRequest, Piece
from minicluster.sdk.requests import Attachment, JobsQuestion, Submission
from minicluster.sdk.session import Session


class JobQueue:
    """Talks to the lead of a MiniCluster about its jobs."""

    def __init__(self, kube: KubePort, name: str, connect: Callable[[threading.Event], Channel] | None = None) -> None:
        """Talk over what ``connect`` starts, by default on the lead."""
        self._kube, self._name = kube, name
        self._session = Session(connect or partial(_connect, kube, name))
        # who forgets to close it, and has no open job, leaves no connection
        weakref.finalize(self, self._session.close, "nobody uses it").atexit = False

    def submit(self, work: list[str] | Call, options: JobOptions) -> JobFuture:
        """Submit a command's words, or a call, as a job; return its future. Raises ArgumentError, ClosedError."""
        if isinstance(work, Call):
            if options.get("instance"):
                raise ArgumentError(f"instance=True is for commands: {work.name} has one Python, so leave it out")
            called = {**job_of(work.words, {"name": work.name, **options}), "files": work.files}
            return self._followed(lambda future: Submission(called, future), FunctionFuture)
        job = job_of(work, options)
        return self._followed(lambda future: Submission(job, future))

    def job(self, name: str) -> JobFuture:
        """Return the future of a job by its id: that which there is, if the job is followed already."""
        name = _one_form(name)
        known = (one for one in self._session.open_requests() if isinstance(one, Submission))
        futures = (one.future for one in known if _one_form(one.name) == name)
        return next(futures, None) or self._followed(lambda future: Attachment(name, future))

    def _followed(self, request: Callable[[JobFuture], Submission], kind: type[JobFuture] = JobFuture) -> JobFuture:
        """Return a new future, for which a request is sent."""

        def cancel() -> None:
            self._session.say(submission, submission.cancellation())

        submission = request(kind(cancel, self._output))
        self._session.send(submission)
        return submission.future

    def _output(self, name: str) -> Iterator[Piece]:
        """Yield what a job prints, until its end. Raises OutputGone, and what the session fails with."""
        output = OutputRequest(name)
        self._session.send(output)
        try:
            while (pieces := output.take()) is not None:
                yield from pieces
                if output.is_paused:
                    self._session.say(output, [output.message()])
        finally:
            self._session.say(output, output.stop(), is_last=True)

    def jobs(self, *, ended: bool, timeout: float | None) -> JobTable:
        """Return the jobs, the oldest first. Raises WaitTimeoutError, and what the session fails with."""
        question = JobsQuestion(ended=ended)
        self._session.send(question)
        try:
            return question.answer.result(timeout)
        except TimeoutError as error:
            if isinstance(error, WaitTimeoutError):
                raise
            why = ": ".join(filter(None, (f"no answer within {timeout} s", self._session.problem)))
            way = f"`minicluster status {self._name}` says more"
            raise WaitTimeoutError(f"{self._name} in {self._kube}: {why}: {way}") from None

    def close(self, seconds: float) -> None:
        """End the session, within some seconds; the futures of unfinished jobs raise ClosedError."""
        self._session.close(f"{self._name} was closed before this was over", seconds)


def _one_form(name: str) -> str:
    """Return an id in the form that Flux shows, where it is written with an f."""
    return name.replace("f", "\u0192", 1) if name.startswith("f") else name


def _connect(kube: KubePort, name: str, stop: threading.Event) -> Channel:
    return ask.start(kube, wait_for_lead(kube, name, stop=stop))
