"""Jobs of the SDK: their options, their state in the queue, and their futures."""

import shlex
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures._base import PENDING
from dataclasses import dataclass
from typing import Any, TypedDict

from minicluster.cluster.states import of_job
from minicluster.sdk.exceptions import ArgumentError, ClosedError, JobFailed, SdkError
from minicluster.sdk.finished import FinishedJob
from minicluster.sdk.pictured import as_html


@dataclass(frozen=True)
class Job:
    """A job in the queue."""

    id: str
    name: str
    state: str  #: depend, priority, sched, run, cleanup or inactive
    result: str  #: completed, failed, canceled or timeout; "" until it is inactive
    exit_code: int | None  #: once it is inactive
    nodes: str  #: a hostlist, "" until it has nodes
    tasks: int
    submitted: float  #: seconds since 1970
    runtime: float  #: seconds
    waits: str = ""  #: why it waits, "" for one that does not

    @property
    def status(self) -> str:
        """The word of `minicluster jobs`: pending, running, completed, failed, canceled or timeout."""
        return of_job(self.state.upper(), self.result.upper()).lower()

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        rows = {"job": self.id, "name": self.name, "state": self.status, "why": self.waits, "nodes": self.nodes}
        return as_html({**rows, "exit code": self.exit_code, "seconds": round(self.runtime, 1) or None})


class JobOptions(TypedDict, total=False):
    """The options of `MiniCluster.submit`: none has to be given."""

    nodes: int  #: without ``tasks``: whole nodes, with a task each
    tasks: int  #: 1 by default, or one for each node
    cores_per_task: int  #: 1 by default
    gpus_per_task: int  #: 0 by default
    exclusive: bool  #: whole nodes, whatever the tasks need
    environment: Mapping[str, object]  #: added to that of the lead's container
    working_dir: str  #: by default that of the lead's container
    time_limit: float  #: seconds; none by default
    name: str  #: by default the command's
    attributes: Mapping[str, Any]  #: of the jobspec, by their paths: ``{"system.shell.options.verbose": 1}``


def words_of(command: str | Sequence[str], more: Sequence[object] = ()) -> list[str]:
    """Return the words of a command. Raises ArgumentError."""
    if callable(command):
        raise ArgumentError(
            f"{command!r} is a Python callable, and a job runs a command: put it into a file of the image or of a "
            "volume, and submit the command that runs the file"
        )
    try:
        words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
    except ValueError as error:
        raise ArgumentError(f"{command!r} is not a command: {error}; a list needs no quotes") from None
    except TypeError:
        raise ArgumentError(f"{command!r} is not a command: give a text, or a list of words") from None
    if not words:
        raise ArgumentError(f"{command!r} is not a command: give at least one word")
    return words + [str(word) for word in more]


def job_of(words: list[str], options: JobOptions) -> dict[str, Any]:
    """Return a job as remote.py reads it, without the options that are not set. Raises ArgumentError."""
    given = {name: value for name, value in options.items() if value not in (None, "", False)}
    unknown = [name for name in given if name not in JobOptions.__annotations__]
    if unknown:
        raise ArgumentError(
            f"{unknown[0]} is not an option of a job: give one of {', '.join(JobOptions.__annotations__)}"
        )
    _check(options)
    environment = {name: str(value) for name, value in (options.get("environment") or {}).items()}
    attributes = dict(options.get("attributes") or {})
    if name := given.pop("name", ""):
        attributes["system.job.name"] = name
    return {"command": words, **given, "environment": environment, "attributes": attributes}


def _check(options: JobOptions) -> None:
    """Raise ArgumentError for numbers that make no sense."""
    for name, least in (("nodes", 1), ("tasks", 1), ("cores_per_task", 1), ("gpus_per_task", 0)):
        value = options.get(name)
        if value is not None and (not isinstance(value, int) or value < least):
            raise ArgumentError(f"{name}={value!r}: give a whole number, {least} or more")
    nodes, tasks, seconds = options.get("nodes"), options.get("tasks"), options.get("time_limit")
    if nodes and tasks and nodes > tasks:
        raise ArgumentError(f"nodes={nodes} for tasks={tasks}: each node needs a task; leave tasks out or raise it")
    if options.get("exclusive") and not nodes:
        raise ArgumentError("exclusive=True without nodes: say how many nodes")
    if seconds is not None and not seconds > 0:
        raise ArgumentError(f"time_limit={seconds!r}: give seconds, more than 0; without it there is no limit")


class JobFuture(Future[FinishedJob]):
    """The future of a job. Its result is a FinishedJob; it raises JobFailed when the job fails.

    It is a `concurrent.futures.Future`, so ``as_completed``, ``wait`` and callbacks work, and it can be awaited. Output
    comes when the job ends, and stays in memory. A client that was cut off learns at its return how its jobs have
    ended, also those that Flux has forgotten: exit code and reason are right then, and the output is a line that says
    that it is gone.
    """

    def __init__(self, cancel_job: Callable[[], None]) -> None:
        """Start without an id."""
        super().__init__()
        self._cancel_job = cancel_job
        self._started = False
        self._id = self._waits = ""
        self._make_locks()
        self.add_done_callback(lambda _: self._accepted.set())

    def _make_locks(self) -> None:
        self._accepted = threading.Event()
        self._cancelling = threading.RLock()  # a callback may cancel

    @property
    def id(self) -> str:
        """Flux's id of the job, "" until Flux has it."""
        return self._id

    @property
    def waits(self) -> str:
        """Why the job waits, once it has waited for some seconds; "" before, and when it no longer waits."""
        return "" if self._started or self.done() else self._waits

    def wait_for_id(self, timeout: float | None = None) -> str:
        """Return the id as soon as Flux has the job.

        Jobs that are submitted right after each other can come into the queue in another order: wait for the id of the
        first where the order matters.

        Raises TimeoutError, and what the future raises when it is over without an id.
        """
        if not self._accepted.wait(timeout):
            raise TimeoutError(f"Flux has not taken the job within {timeout} s: wait longer, or cancel it")
        if not self._id:
            self.result(0)
        return self._id

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

    def _repr_html_(self) -> str:
        """Return what a notebook shows; it waits for nothing."""
        error = self.exception(0) if self.done() and not self.cancelled() else None
        state = "canceled" if self.cancelled() else "running" if self.running() else "pending"
        if self.done() and not self.cancelled():
            state = str(error) if error else "completed"
        return as_html({"job": self.id, "state": state, "why": self.waits})

    def accept(self, name: str) -> None:
        """Note the id."""
        self._id = name
        self._accepted.set()

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
        self._accepted.set()
        named = f"job {self._id}" if self._id else "this job"
        self.set_exception(ClosedError(f"{named} was submitted before the fork: its parent process has the result"))
