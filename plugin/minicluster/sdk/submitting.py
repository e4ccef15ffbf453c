"""A MiniCluster's methods for jobs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Unpack

from minicluster.sdk.exceptions import translated
from minicluster.sdk.executor import CommandExecutor, executor_of
from minicluster.sdk.functions import work_of
from minicluster.sdk.job_future import JobFuture
from minicluster.sdk.job_queue import JobQueue
from minicluster.sdk.jobs import Fit, JobOptions, JobTable
from minicluster.sdk.lead import with_folder
from minicluster.sdk.pictured import Pictured


class Submitting(Pictured):
    """A MiniCluster that takes jobs, and lists them."""

    _queue: JobQueue

    def submit(
        self, command: str | Sequence[str] | Callable[..., Any], *arguments: object, **options: Unpack[JobOptions]
    ) -> JobFuture:
        """Submit a job, and return its future. ``options``: see JobOptions.

        ``command`` is a list of words, or a text that is split as a shell would (`shlex`), with ``arguments`` as more
        words; no shell runs it. Or it is a Python function, which a node calls with ``arguments``; its future is a
        FunctionFuture. With ``upload`` it returns when the nodes have the folder.

        Raises ArgumentError, ClosedError. The future raises JobFailed, JobRefused, JobLost; EndedError when the
        MiniCluster ends first; ApiError when it can't be reached for minutes.
        """
        return self._queue.submit(work_of(command, arguments), with_folder(self._kube, self.name, options))

    def map(
        self,
        command: str | Sequence[str] | Callable[..., Any],
        *arguments: Iterable[object],
        chunksize: int = 1,
        timeout: float | None = None,
        **options: Unpack[JobOptions],
    ) -> Iterator[Any]:
        """Submit a job for each argument, and yield the results in that order, as `CommandExecutor.map` does."""
        return self.executor(**options).map(command, *arguments, chunksize=chunksize, timeout=timeout)

    def would_fit(self, **options: Unpack[JobOptions]) -> Fit:
        """Return whether a job with these ``options`` of `submit` would run, and when. Raises ArgumentError."""
        from minicluster.sdk.jobs import would_fit  # noqa: PLC0415 - few programs need it

        with translated():
            return would_fit(self._kube, self.name, options)

    def executor(self, tree: int | tuple[int, int] = 0, **options: Unpack[JobOptions]) -> CommandExecutor:
        """Return an executor of commands and functions with these ``options`` of `submit`.

        ``tree``: spread over as many instances of Flux, of a node each; (COUNT, NODES) are of more.
        """
        return executor_of(self.submit, tree, with_folder(self._kube, self.name, options), (self._kube, self.name))

    def jobs(self, *, ended: bool = False, timeout: float | None = 60) -> JobTable:
        """Return the jobs, the oldest first; with ``ended`` also 90,000. Raises WaitTimeoutError, EndedError."""
        return self._queue.jobs(ended=ended, timeout=timeout)

    def job(self, name: str) -> JobFuture:
        """Return the future of a job by its id, whoever has submitted it: after a restart of a notebook, for example.

        The future raises what that of `submit` does, and JobLost if nothing is known of the job.
        """
        return self._queue.job(name)
