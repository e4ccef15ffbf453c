"""A `concurrent.futures.Executor` whose tasks are commands."""

import concurrent.futures
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any, Unpack

from minicluster.console import signals
from minicluster.sdk.exceptions import ClosedError
from minicluster.sdk.finished import FinishedJob
from minicluster.sdk.job_future import JobFuture
from minicluster.sdk.jobs import JobOptions, words_of


class CommandExecutor(Executor):
    """Runs commands as jobs, not Python callables: the image may have no Python.

    ``map(command, arguments, …)`` appends one argument of each list to the command, as `Executor.map` does for a
    function, and gives the finished jobs in that order.
    """

    def __init__(self, submit: Callable[..., JobFuture], options: JobOptions) -> None:
        self._submit, self._options = submit, options
        self._is_closed = False
        self.after_fork()
        signals.keep_after_fork(self)

    def after_fork(self) -> None:
        """Have no jobs, in a child: those that were submitted are its parent's."""
        self._futures: set[JobFuture] = set()
        self._lock = threading.Lock()

    def submit(  # type: ignore[override]  # a command in place of a callable
        self, command: str | Sequence[str], /, *arguments: object, **options: Unpack[JobOptions]
    ) -> JobFuture:
        """Submit a command with arguments; options are those of `MiniCluster.submit`, and override the executor's.

        Raises ArgumentError, ClosedError after `shutdown`.
        """
        words = words_of(command, arguments)
        with self._lock:
            if self._is_closed:
                raise ClosedError(f"{words[0]} can't be submitted: the executor was shut down, make another")
            future = self._submit(words, **{**self._options, **options})
            self._futures.add(future)
        future.add_done_callback(lambda _: self._futures.discard(future))
        return future

    def map(  # type: ignore[override]  # a command in place of a callable
        self, command: str | Sequence[str], /, *arguments: Iterable[object], **limits: Any
    ) -> Iterator[FinishedJob]:
        """Submit a job for each argument, or each tuple of arguments from several lists; yield them in that order.

        ``limits`` are those of `Executor.map`, such as ``timeout``. Raises what the futures raise; then, or when it is
        closed, jobs that have not been yielded are cancelled, even running ones: submit each where they shall go on.
        """
        jobs: Iterator[FinishedJob] = super().map(command, *arguments, **limits)  # type: ignore[arg-type]
        return jobs

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more jobs; wait for those submitted. With ``cancel_futures`` cancel them first, even running ones.

        The end of the ``with`` block waits. Jobs that nobody waits for go on when the program ends.
        """
        with self._lock:
            self._is_closed = True
            futures = list(self._futures)
        if cancel_futures:
            for future in futures:
                future.cancel()
        if wait:
            concurrent.futures.wait(futures)
