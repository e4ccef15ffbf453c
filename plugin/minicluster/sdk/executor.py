"""`concurrent.futures.Executor`s whose tasks are jobs: commands, and Python functions.

One puts them into the queue of the MiniCluster. That takes only so many, so another one has instances of Flux of its
own, which are jobs of the MiniCluster.
"""

import concurrent.futures
import math
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from typing import Any, Unpack

from minicluster.cluster.lead import Node
from minicluster.console import signals
from minicluster.errors import EndError, KubernetesError
from minicluster.kube.port import Channel, KubePort
from minicluster.lead.ask import BrokenError, read
from minicluster.lead.program import BOOT
from minicluster.sdk.exceptions import ArgumentError, ClosedError, EndedError
from minicluster.sdk.job_future import JobFuture
from minicluster.sdk.job_queue import Call, JobQueue, batches, in_batches, work_of
from minicluster.sdk.jobs import JobOptions
from minicluster.sdk.lead import LOG, QUIET_SECONDS, wait_for_lead, with_folder
from minicluster.waiting.ready import find_running_node


class CommandExecutor(concurrent.futures.Executor):
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


#: What runs in an instance until its executor is shut down
HELD = ("flux", "broker", "flux", "kvs", "get", "--waitcreate", "minicluster.end")
RELEASE = ("kvs", "put", "minicluster.end=1")
#: As `flux alloc` has them: a broker is no MPI program, and one may end before the others
BROKERS = {"system.job.name": "tree", "system.shell.options.mpi": "none", "system.shell.options.exit-timeout": "none"}
#: Seconds that instances have to begin together, as the first jobs are spread over those that run
TOGETHER_SECONDS = 5.0
#: Seconds until an instance that runs is known by its address
ADDRESS_SECONDS = 60.0
INSTANCE_ADDRESS = re.compile(r"ssh://([^/]+)(/.*)")


class Instance:
    """An instance of Flux on some nodes of a MiniCluster, and its queue."""

    def __init__(self, kube: KubePort, name: str, job: JobFuture) -> None:
        self._kube, self._name, self.job = kube, name, job
        self._node: tuple[Node, str] | None = None  # of its first broker, and the path of its socket
        self.queue = JobQueue(kube, name, self._connect)
        self.jobs = set[JobFuture]()  #: that have not ended

    def submit(self, words: list[str], options: JobOptions) -> JobFuture:
        """Submit a job to its queue."""
        future = self.queue.submit(words, with_folder(self._kube, self._name, options))
        self.jobs.add(future)
        future.add_done_callback(self.jobs.discard)
        return future

    def _connect(self, stop: threading.Event, note: Callable[[str], None]) -> Channel:
        """Start the program that takes jobs, where the first broker of the instance is. Raises EndError."""
        while not self.job.running() and not self.job.done():
            if stop.wait(0.1):
                break
        if self.job.done():
            raise EndError(f"job {self.job.id} has ended, which had the instance of Flux for this job")
        self._node = self._node or self._find(stop, note)
        return self._run("python", "-c", BOOT)

    def _find(self, stop: threading.Event, note: Callable[[str], None]) -> tuple[Node, str]:
        """Return the node of its first broker, and the path of its socket there. Raises BrokenError."""
        lead = wait_for_lead(self._kube, self._name, stop=stop, note=note)
        words = lead.flux_words("uri", "--wait", self.job.id)
        with closing(self._kube.run(lead.pod.name, lead.pod.runner, words)) as channel:
            said = (read(channel, ADDRESS_SECONDS) or b"").decode(errors="replace").strip()
        if not (match := INSTANCE_ADDRESS.fullmatch(said)):
            raise BrokenError(f"the instance of job {self.job.id} has no address: {said}")
        return find_running_node(self._kube, self._name, match[1], LOG.warning, waits=False), match[2]

    def _run(self, *words: str) -> Channel:
        """Run a flux command there."""
        assert self._node
        node, socket = self._node
        line = ["env", f"FLUX_URI=local://{socket}", f"{node.home}/bin/flux", *words]
        return self._kube.run(node.pod.name, node.pod.runner, line, has_input=True)

    def end(self) -> None:
        """End it."""
        self.queue.close(0)
        if self._node:
            with suppress(KubernetesError), closing(self._run(*RELEASE)) as channel:
                read(channel, ADDRESS_SECONDS)
        else:
            self.job.cancel()


class TreeExecutor(CommandExecutor):
    """An executor with a queue for each of some instances."""

    def __init__(self, instances: Sequence[Instance], options: JobOptions) -> None:
        super().__init__(self._choose, options)
        self._instances, self._has_begun = instances, False

    def _choose(self, words: list[str], **options: Unpack[JobOptions]) -> JobFuture:
        """Submit a job where the fewest are. The first waits until an instance runs. Raises EndedError."""
        return min(self._running(), key=lambda one: len(one.jobs)).submit(words, options)

    def _running(self) -> list[Instance]:
        """Return the instances that run: all, or those that do while others have no nodes for a while."""
        begin = told = time.monotonic()
        while True:
            running = [one for one in self._instances if one.job.running()]
            late = time.monotonic() - begin > TOGETHER_SECONDS
            if len(running) == len(self._instances) or (running and (late or self._has_begun)):
                self._has_begun = True
                return running
            if all(one.job.done() for one in self._instances):
                raise EndedError("no instance of this executor runs any more: make another executor")
            if time.monotonic() - told > QUIET_SECONDS:
                told = math.inf
                LOG.warning("waiting for an instance of Flux: %s", self._instances[0].job.waits or "it starts")
            time.sleep(0.05)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do the same, and end the instances; without ``wait`` as soon as their jobs have ended."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        ending = threading.Thread(target=self._end, name="minicluster-tree")
        ending.start()
        if wait:
            ending.join()

    def _end(self) -> None:
        concurrent.futures.wait(list(self._futures))
        for each in self._instances:
            each.end()


def executor_of(
    submit: Callable[..., JobFuture], tree: int | tuple[int, int], options: JobOptions, where: tuple[KubePort, str]
) -> CommandExecutor:
    """Return an executor of a MiniCluster's queue, or of some instances on some nodes each. Raises ArgumentError."""
    count, nodes = tree if isinstance(tree, tuple) else (tree, 1)
    if count < 0 or nodes < 1:
        raise ArgumentError(f"tree={tree!r}: give a number of instances, or that and the nodes of each")
    if not count:
        return CommandExecutor(submit, options)
    made = [submit(HELD, nodes=nodes, attributes=BROKERS) for _ in range(count)]
    return TreeExecutor([Instance(*where, job) for job in made], options)
