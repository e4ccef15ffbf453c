"""A MiniCluster in Python: the methods of the SDK."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Self, Unpack

from minicluster.cluster.job import release_of
from minicluster.console import signals
from minicluster.console.streams import Say, aloud
from minicluster.errors import MiniClusterError
from minicluster.kube.port import KubePort
from minicluster.sdk import release
from minicluster.sdk.exceptions import ArgumentError, translated
from minicluster.sdk.forward import PortForward
from minicluster.sdk.job_queue import JobQueue
from minicluster.sdk.jobs import as_html, words_of
from minicluster.sdk.lead import LeadPort, lines_of, run_on_lead, settled
from minicluster.sdk.outcome import Result
from minicluster.sdk.submitting import Submitting
from minicluster.status.document import status_of
from minicluster.status.lookup import Cluster, find_job
from minicluster.waiting.wait import wait

__all__ = ["MiniCluster"]


class MiniCluster(Submitting):
    """A MiniCluster that runs, or starts; `create` or `connect` make one.

    As a context manager it deletes at the end a MiniCluster that it created, but not one that it connected to. All
    methods may be called from any thread, and in a child of a fork, which leaves its parent's jobs and MiniCluster
    alone. They raise ApiError when Kubernetes refuses or can't be reached. An empty ``namespace`` or ``context`` is the
    current one of the kubeconfig, or that of a pod. ``progress`` gets a line of text at each change, such as ``print``.
    """

    def __init__(self, kube: KubePort, name: str, *, is_own: bool) -> None:
        """Take an existing MiniCluster. Raises NotFoundError."""
        with translated():
            job = find_job(kube, name)
        self.name: str = job["metadata"]["name"]  #: of the MiniCluster
        self.release: str = release_of(job)  #: of Helm
        self.namespace: str = job["metadata"]["namespace"]
        self._kube, self._is_own = kube, is_own
        self._queue = JobQueue(kube, self.name)
        signals.keep_after_fork(self)

    def after_fork(self) -> None:
        """Leave the MiniCluster and its page to the parent, in a child."""
        self._is_own, self._page = False, None

    @classmethod
    @translated()
    def create(  # noqa: PLR0913 - names that `run` has
        cls,
        name: str,
        namespace: str = "",
        values: Mapping[str, Any] | None = None,
        *,
        context: str = "",
        chart: str = "",
        wait: bool = False,
        timeout: float | None = 600,
        progress: Say | None = None,
        **options: Unpack[release.CreateOptions],
    ) -> Self:
        """Install a release of the chart with Helm, and return at once: the pods start, and jobs wait for them.

        ``values`` are those of the chart (docs/reference/values.md); ``options`` override them, see CreateOptions.
        ``chart`` replaces the chart in this package. With ``wait`` return at the quorum, for which there are
        ``timeout`` seconds. Raises ReleaseError, ArgumentError; EndedError, WaitTimeoutError: the release stays then.
        """
        seconds = (math.inf if timeout is None else timeout) if wait else None
        kube = settled(context, namespace)
        release.install(kube, name, values or {}, chart, options, seconds, aloud(progress))
        return cls(kube, name, is_own=True)

    @classmethod
    @translated()
    def connect(cls, name: str, namespace: str = "", *, context: str = "") -> Self:
        """Find an existing MiniCluster, by its release's name or its own. Raises NotFoundError."""
        return cls(settled(context, namespace), name, is_own=False)

    @classmethod
    @translated()
    def run(  # noqa: PLR0913 - names that `create` and `wait` have
        cls,
        command: str | Sequence[str] = (),
        namespace: str = "",
        values: Mapping[str, Any] | None = None,
        *,
        context: str = "",
        timeout: float | None = None,
        progress: Say | None = None,
        **options: Unpack[release.RunOptions],
    ) -> Result:
        """Run a command in a MiniCluster of its own, which is removed; return its exit code, and the log as `stdout`.

        Without ``command`` the ``values`` have one. Raises ReleaseError, EndedError, WaitTimeoutError.
        """
        words = words_of(command) if command else ()
        if pool := options.get("inside"):
            with cls.connect(pool, namespace, context=context) as its:
                return release.run_inside(its.submit, words, timeout, {**options, "values": values})
        where = partial(settled, context, namespace)
        return release.run(where, words, values, timeout, options, aloud(progress))

    @translated()
    def flux(self, *words: str, timeout: float | None = 300) -> Result:
        """Wait for the lead, and run a flux command there to its end. A failure is no error: see its exit code.

        ``timeout``, in seconds, is for all of it; None is no limit. Raises WaitTimeoutError, EndedError.
        """
        return run_on_lead(self._kube, self.name, words, timeout)

    def logs(self, container: str = "", *, node: str = "", follow: bool = False) -> Iterator[str]:
        """Yield the lines of the lead's log, or of another container of its pod.

        ``node`` is another node, by its rank, or its name in Flux: ``"3"``, ``"gpu-1"``.
        With ``follow`` it yields new lines until the MiniCluster ends, also from a pod that replaces this one.
        """
        from minicluster.waiting import logs  # noqa: PLC0415 - few programs need it

        with translated():
            where = (*logs.find_log(self._kube, self.name, node), container)
            yield from lines_of(logs.follow(*where, aloud(None)) if follow else logs.show(*where))

    @translated()
    def scale(
        self,
        size: int | None,
        *,
        group: str = "",
        wait: bool = False,
        timeout: float | None = 600,
        progress: Say | None = None,
    ) -> None:
        """Change the size, or that of a group, which may be 0; with ``wait`` return when these nodes are in Flux.

        With autoscaling, ``size`` is a request for at least that many nodes; None withdraws it. A burst's nodes are in
        the Flux of its root, so ``wait`` is refused there. ``timeout``, in seconds, is for the wait.

        Raises ReleaseError when the chart refuses; ArgumentError when the autoscaler does, or without such a group;
        EndedError, WaitTimeoutError.
        """
        from minicluster.lifecycle import scaling  # noqa: PLC0415 - it brings Helm's room

        release.check_size(size, group)
        release.check_post_renderer()
        seconds = math.inf if timeout is None else timeout
        scaling.scale(self._kube, self.name, size, group, seconds if wait else None, aloud(progress))

    @translated()
    def status(self) -> dict[str, Any]:
        """Return the document that ``minicluster status NAME --output json`` prints. Raises NotFoundError."""
        return status_of(self._kube, self.name)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: name and state, or why that is not known."""
        try:
            status = self.status()
        except MiniClusterError as error:
            return as_html({"MiniCluster": self.name, "namespace": self.namespace, "unknown": error})
        nodes, jobs = status["nodes"] or {}, status["jobs"] or {}
        return as_html(
            {
                "MiniCluster": self.name,
                "namespace": self.namespace,
                "state": ": ".join(filter(None, (status["state"], status["why"]))),
                "size": f"{status['size']} of at most {status['maxSize']}",
                "nodes": ", ".join(f"{count} {state}" for state, count in nodes.items() if count),
                "jobs": ", ".join(f"{count} {state}" for state, count in jobs.items() if count),
            }
        )

    def port_forward(self, port: int, local_port: int = 0) -> PortForward:
        """Listen on a local port, any free one by default, that leads to a port of the lead. Raises ArgumentError."""
        lead = LeadPort(self._kube, self.name, port)
        return PortForward(lead.connect, local_port, lead.close)

    @translated()
    def wait(
        self, until: Literal["quorum", "end"] = "quorum", timeout: float | None = None, progress: Say | None = None
    ) -> int | None:
        """Wait for the quorum or the end, whichever is first. To reach the quorum it wakes a sleeping MiniCluster.

        ``progress`` gets each new state, as ``minicluster wait`` prints it. Returns None at the quorum, and at the end
        the exit code of the work.

        Raises WaitTimeoutError; EndedError when it was deleted, or failed without an exit code.
        """
        if until not in ("quorum", "end"):
            raise ArgumentError(f"until={until!r}: give 'quorum' or 'end'")
        end = wait(Cluster(self._kube.within(timeout), self.name), until, aloud(progress))
        return end.code if end else None

    @translated()
    def delete(self, timeout: float = 600) -> None:
        """Uninstall the release, and return when its pods are gone. Raises ReleaseError."""
        from minicluster.release import helm  # noqa: PLC0415 - who only submits jobs has no release

        self.close(0)
        helm.uninstall(self._kube, self.release, timeout, "--ignore-not-found")

    def close(self, timeout: float = 30) -> None:
        """Leave the MiniCluster as it is. Its jobs go on, but the futures of unfinished jobs raise ClosedError.

        ``timeout`` is the most seconds to wait until Flux has all submitted jobs, and knows which are cancelled. The
        end of a Python program waits so long, too.
        """
        self._close_page()
        self._queue.close(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Delete the MiniCluster if it was created here; otherwise only leave it."""
        if self._is_own:
            self.delete()
        else:
            self.close()

    def __repr__(self) -> str:
        return f"<MiniCluster {self.name} in {self._kube}>"
