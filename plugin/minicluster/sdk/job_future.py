"""The future of a job of the SDK."""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures._base import PENDING
from typing import Any

from minicluster.sdk.exceptions import ArgumentError, ClosedError, JobLost, SdkError, WaitTimeoutError
from minicluster.sdk.jobs import as_html
from minicluster.sdk.outcome import OUTPUT_STREAMS, FinishedJob, JobFailed, OutputGone, Piece, Stream, cut


class JobFuture(Future[FinishedJob]):
    """The future of a job. Its result is a FinishedJob; it raises JobFailed when the job fails.

    It is a `concurrent.futures.Future`, so ``as_completed``, ``wait`` and callbacks work, and it can be awaited. The
    result has the last 16 MiB of the output, and a line that says what was dropped. A client that was cut off learns at
    its return how its jobs have ended, also those that Flux has forgotten: exit code and reason are right then, and the
    output is a line that says that it is gone.
    """

    def __init__(
        self,
        cancel_job: Callable[[], None],
        output: Callable[[str], Iterator[Piece]] = lambda _: iter(()),
        problem: Callable[[], str] = str,
    ) -> None:
        """Start without an id; ``output`` yields what the job of an id prints.

        ``problem`` tells why Flux can't be asked now, "" when it can.
        """
        super().__init__()
        self._cancel_job, self._output, self._problem = cancel_job, output, problem
        self._started = False
        self._id = self._waits = ""
        self._make_locks()
        self.add_done_callback(lambda _: self._notify())

    def _make_locks(self) -> None:
        self._told = threading.Condition()
        self._cancelling = threading.RLock()  # a callback may cancel

    @property
    def id(self) -> str:
        """Flux's id of the job, "" until Flux has it."""
        return self._id

    @property
    def waits(self) -> str:
        """Why the job waits, or Flux can't be asked, after some seconds; "" before, and when it no longer waits."""
        return "" if self._started or self.done() else self._problem() or self._waits

    def wait_for_id(self, timeout: float | None = None) -> str:
        """Return the id as soon as Flux has the job.

        Jobs that are submitted right after each other can come into the queue in another order: wait for the id of the
        first where the order matters.

        Raises WaitTimeoutError, and what the future raises when it is over without an id.
        """
        if not self._wait_for_other("", timeout):
            why = self._problem() or "wait longer, or cancel it"
            raise WaitTimeoutError(f"Flux has not taken the job within {timeout} s: {why}")
        if not self._id:
            self.result(0)
        return self._id

    def _wait_for_other(self, name: str, timeout: float | None = None) -> bool:
        """Wait for another id, or the end; return whether there is one of them."""
        with self._told:
            return self._told.wait_for(lambda: self._id != name or self.done(), timeout)

    def _notify(self) -> None:
        with self._told:
            self._told.notify_all()

    def lines(self, stream: Stream = "stdout") -> Iterator[str]:
        """Yield what the job prints, line by line, while it runs; each call begins with the first line.

        ``stream`` is "stdout", "stderr", or "output" for both. Lines keep their ends, as those of a file. At most 16
        MiB wait in memory for a slow reader. Lost connections lose no line. A job that runs again prints again.

        Raises what `result` raises, but JobFailed: then all lines have come. JobLost if Flux no longer has them.
        """
        wanted = OUTPUT_STREAMS.get(stream)
        if not wanted:
            raise ArgumentError(f"stream={stream!r}: give one of {', '.join(OUTPUT_STREAMS)}")
        return self._lines(wanted)

    def _lines(self, wanted: Sequence[str]) -> Iterator[str]:
        gone, name = None, self.wait_for_id()
        while name:
            gone, before = None, name
            try:
                yield from cut(piece for piece in self._output(name) if piece[0] in wanted)
            except OutputGone as error:
                gone = error
            self._wait_for_other(before)
            name = self._id if self._id != before else ""
        end = self.exception(0)
        if end and not isinstance(end, JobFailed):
            raise end
        if gone:
            raise JobLost(f"Flux no longer has the output of job {self._id}: flux.keptJobs says how many it keeps")

    def __await__(self) -> Generator[Any, None, FinishedJob]:
        """Wait for the result in a coroutine; a cancelled task cancels the job."""
        import asyncio  # noqa: PLC0415 - few programs need it

        return asyncio.wrap_future(self).__await__()

    def running(self) -> bool:
        """Tell whether the job runs."""
        return self._started and not self.done()

    def cancel(self) -> bool:
        """Cancel the job, even if it runs. Returns False if it has ended."""
        with self._cancelling:
            if self.cancelled():
                return True
            # the future is never marked as running, so that this works until the job has ended
            if not super().cancel():
                return False
            self.set_running_or_notify_cancel()
        self._cancel_job()
        return True

    def result(self, timeout: float | None = None) -> Any:
        """Return the result. Raises WaitTimeoutError, which is a TimeoutError, and the job's error."""
        try:
            return super().result(timeout)
        except TimeoutError:
            raise self._late(timeout) from None

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return the job's error, None for none. Raises WaitTimeoutError."""
        try:
            return super().exception(timeout)
        except TimeoutError:
            raise self._late(timeout) from None

    def _late(self, timeout: float | None) -> BaseException:
        """Return what a wait raises that took too long: the job's own error if that is what came."""
        if self.done() and not self.cancelled() and (error := super().exception(0)):
            return error
        known = f"it waits: {self._waits}" if self.waits else "it runs" if self.running() else ""
        why = ": ".join(filter(None, (f"{self._named} has not ended within {timeout:g} s", self._problem() or known)))
        return WaitTimeoutError(why)

    @property
    def _named(self) -> str:
        return f"job {self._id}" if self._id else "this job"

    @property
    def state(self) -> str:
        """How far it is: pending, running, completed, failed or canceled."""
        if self.cancelled():
            return "canceled"
        if self.done():
            return "failed" if self.exception(0) else "completed"
        return "running" if self.running() else "pending"

    def __repr__(self) -> str:
        why = f": {self.waits}" if self.waits else ""
        return f"<{type(self).__name__} {self._named} {self.state}{why}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows; it waits for nothing."""
        state = self.state
        return as_html({"job": self.id, "state": self.exception(0) if state == "failed" else state, "why": self.waits})

    def accept(self, name: str) -> None:
        """Note the id."""
        self._id = name
        self._notify()

    def wait_for(self, reason: str) -> None:
        """Note why the job waits."""
        self._waits = reason

    def start(self) -> None:
        """Note that the job runs."""
        self._started = True

    def end(self, job: FinishedJob) -> None:
        """Set the result, or JobFailed."""
        with self._cancelling:
            if self.done():
                return
            self._settle(job)

    def _settle(self, job: FinishedJob) -> None:
        if job.reason:
            self.set_exception(JobFailed(job))
        else:
            self.set_result(job)

    def fail(self, error: SdkError) -> None:
        """Set an error."""
        with self._cancelling:
            if not self.done():
                self.set_exception(error)

    def leave(self) -> None:
        """Set an error in a child of the process that follows the job, if it has not ended.

        No callback is called: one that submits the job again would do so in each child.
        """
        if self._state != PENDING:
            return
        # a thread that is gone may have held its locks
        super().__init__()
        self._make_locks()
        self.set_exception(
            ClosedError(f"{self._named} was submitted before the fork: its parent process has the result")
        )
