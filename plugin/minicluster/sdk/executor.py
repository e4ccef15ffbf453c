"""A `concurrent.futures.Executor` whose tasks are jobs: commands, and Python functions."""

import concurrent.futures
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any

from minicluster.console import signals
from minicluster.sdk.exceptions import ArgumentError, ClosedError
from minicluster.sdk.functions import Call, batches, in_batches, work_of
from minicluster.sdk.job_future import JobFuture
from minicluster.sdk.jobs import JobOptions


class CommandExecutor(Executor):
    """Runs commands and Python functions as jobs.

    ``map(command, arguments, …)`` appends one argument of each list to the command, as `Executor.map` does for a
    function, and gives the finished jobs, or what the function returned, in that order. ``functools.partial`` gives a
    function what is the same each time. dask takes it by ``dask.config.set(pool=executor)``, joblib by `joblib`.
    """

    #: That dask asks for. Flux has the queue, so no job waits here for a free node
    _max_workers = 1000

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
        self, command: str | Sequence[str] | Callable[..., Any], /, *arguments: object, **options: Any
    ) -> JobFuture:
        """Submit a command with arguments; options are those of `MiniCluster.submit`, and override the executor's.

        Those of a function are its own keyword arguments. Raises ArgumentError, ClosedError after `shutdown`.
        """
        work = work_of(command, arguments, options)
        own = {} if isinstance(work, Call) else options
        with self._lock:
            if self._is_closed:
                raise ClosedError(f"{work[0]} can't be submitted: the executor was shut down, make another")
            future = self._submit(work, **{**self._options, **own})
            self._futures.add(future)
        future.add_done_callback(lambda _: self._futures.discard(future))
        return future

    def map(  # type: ignore[override]  # a command in place of a callable
        self,
        command: str | Sequence[str] | Callable[..., Any],
        /,
        *arguments: Iterable[object],
        chunksize: int = 1,
        **limits: Any,
    ) -> Iterator[Any]:
        """Submit a job for each argument, or each tuple of arguments from several lists; yield them in that order.

        ``chunksize``: so many calls of a function are one job. ``limits`` are those of `Executor.map`, such as
        ``timeout``. Raises what the futures raise; then, or when it is closed, jobs that have not been yielded are
        cancelled, even running ones: submit each where they shall go on.
        """
        if chunksize < 1 or (chunksize > 1 and not callable(command)):
            raise ArgumentError(f"chunksize={chunksize!r}: give 1 or more, and 1 for a command")
        if chunksize > 1 and callable(command):
            calls = batches(zip(*arguments, strict=False), chunksize)
            return _each(super().map(in_batches(command), calls, **limits))
        return super().map(command, *arguments, **limits)  # type: ignore[arg-type]

    def joblib(self) -> Any:
        """Return a backend for ``joblib.parallel_config(backend=…)``; batches of joblib are jobs. It needs joblib."""
        from minicluster.sdk.joblib_backend import FluxBackend  # noqa: PLC0415 - it needs joblib

        return FluxBackend(self)

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


def _each(results: Iterator[list[Any]]) -> Iterator[Any]:
    for part in results:
        yield from part
