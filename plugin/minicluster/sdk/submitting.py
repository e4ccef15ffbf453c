"""What a MiniCluster does for jobs, and its live page."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Unpack

from minicluster.errors import MiniClusterError, ToolError
from minicluster.kube.port import KubePort
from minicluster.sdk.exceptions import SdkError, translated
from minicluster.sdk.executor import CommandExecutor, executor_of
from minicluster.sdk.job_future import JobFuture
from minicluster.sdk.job_queue import JobQueue, work_of
from minicluster.sdk.jobs import Fit, JobOptions, JobTable, would_fit
from minicluster.sdk.lead import with_folder


class LocalPage:
    """A live page, served by a thread of its own."""

    def __init__(self, kube: KubePort, name: str, namespace: str, port: int, **options: Any) -> None:
        """Serve it, with options of `Pages`. Raises UsageError for a port that is taken."""
        # Bokeh's server is installed where pages are wanted
        from minicluster.picture.served import PageServer  # noqa: PLC0415

        self._server = PageServer(kube, where=f" -n {namespace}", **options)
        self._ready = Future[None]()
        self._thread = threading.Thread(target=self._run, args=(port,), name="minicluster-page", daemon=True)
        self._thread.start()
        self._ready.result()
        self.address = self._server.pages.address(name)

    def _run(self, port: int) -> None:
        import asyncio  # noqa: PLC0415 - few programs need it

        try:
            asyncio.run(self._server.run(port, lambda: self._ready.set_result(None), takes_signals=False))
        except MiniClusterError as error:
            self._ready.set_exception(error)

    def stop(self) -> None:
        """Stop it."""
        self._server.stop()
        self._thread.join(10)


class Submitting:
    """A MiniCluster that takes jobs and lists them, and has a live page."""

    name: str
    namespace: str
    _kube: KubePort
    _queue: JobQueue
    _page: LocalPage | None = None

    def dashboard(self, *, port: int = 0, hosts: Sequence[str] = (), writable: bool = False) -> str:
        """Return the address of a live page on this machine, which is there until `close`; it needs Bokeh.

        ``hosts`` are other names by which your browser reaches it, such as that of a JupyterHub whose
        jupyter-server-proxy leads to it: the page is then at ``proxy/PORT/…`` there. With ``writable`` it can cancel
        jobs, and drain and undrain nodes, and asks before it does.
        Raises SdkError without Bokeh, ArgumentError for a port that is taken.
        """
        from minicluster import picture  # noqa: PLC0415 - few programs need it

        try:
            picture.check()
        except ToolError as error:
            raise SdkError(str(error)) from None
        with translated():
            if self._page is None:
                self._page = LocalPage(self._kube, self.name, self.namespace, port, hosts=hosts, writable=writable)
            return self._page.address

    def _close_page(self) -> None:
        if self._page:
            self._page.stop()
            self._page = None

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

    @translated()
    def would_fit(self, **options: Unpack[JobOptions]) -> Fit:
        """Return whether a job with these ``options`` of `submit` would run, and when. Raises ArgumentError."""
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
