"""A MiniCluster in Python: the methods of the SDK."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self, Unpack

from minicluster.cluster.job import policy_of, release_of
from minicluster.lead.conversation import Channel
from minicluster.lead.program import BOOT
from minicluster.live.telling import StateTeller
from minicluster.sdk import release, single_run
from minicluster.sdk.channel import Result, finish
from minicluster.sdk.client import KubeClient
from minicluster.sdk.exceptions import ArgumentError, WaitTimeoutError
from minicluster.sdk.executor import CommandExecutor
from minicluster.sdk.forward import PodConnection, PortForward
from minicluster.sdk.jobs import Job, JobFuture, JobOptions, job_of, words_of
from minicluster.sdk.lead_log import logs
from minicluster.sdk.lead_wait import wait_for_lead
from minicluster.sdk.leads import find_job, ranks_of, wait_for
from minicluster.sdk.requests import Question, Submission, jobs_of
from minicluster.sdk.sdk_evidence import SdkEvidence
from minicluster.sdk.session import Session
from minicluster.sdk.single_run import RunOptions
from minicluster.sdk.status import status

__all__ = ["MiniCluster"]

#: Gets a line for people
Progress = Callable[[str], None]


class MiniCluster:
    """A MiniCluster that runs, or starts; `create` or `connect` make one.

    As a context manager it deletes at the end a MiniCluster that it created, but not one that it connected to. All
    methods may be called from any thread, and raise `ApiError` when Kubernetes refuses or can't be reached.
    """

    def __init__(self, kube: KubeClient, name: str, *, is_own: bool) -> None:
        """Take an existing MiniCluster. Raises NotFoundError."""
        job = find_job(kube, name)
        self.name: str = job["metadata"]["name"]  #: of the MiniCluster
        self.release: str = release_of(job)  #: of Helm
        self.namespace: str = kube.namespace
        self._kube, self._is_own = kube, is_own
        self._session = Session(self._start_session)

    @classmethod
    def create(
        cls,
        name: str,
        namespace: str = "",
        values: Mapping[str, Any] | None = None,
        *,
        context: str = "",
        chart: str = "",
    ) -> Self:
        """Install a release of the chart with Helm, and return at once: the pods start, and jobs wait for them.

        ``values`` are those of the chart (docs/spec.md). ``chart`` is another chart than the one in this package.
        Raises ReleaseError.
        """
        kube = KubeClient(context, namespace)
        release.install(kube, name, values or {}, chart)
        return cls(kube, name, is_own=True)

    @classmethod
    def connect(cls, name: str, namespace: str = "", *, context: str = "") -> Self:
        """Find an existing MiniCluster, by its release's name or its own. Raises NotFoundError."""
        return cls(KubeClient(context, namespace), name, is_own=False)

    @classmethod
    def run(  # noqa: PLR0913 - names that `create` and `wait` have
        cls,
        command: str | Sequence[str] = (),
        namespace: str = "",
        values: Mapping[str, Any] | None = None,
        *,
        context: str = "",
        timeout: float | None = None,
        progress: Progress | None = None,
        **options: Unpack[RunOptions],
    ) -> Result:
        """Run a command in a MiniCluster of its own, which is removed; return its exit code, and the log as `stdout`.

        Without a ``command`` the ``values`` have one. ``options``: see `RunOptions`. ``timeout`` is for all of it.
        Raises ReleaseError, WaitTimeoutError; EndedError when it can't start, or fails without an exit code.
        """
        words = words_of(command) if command else ()
        asked = single_run.asked_for(words, values, timeout, options)
        return single_run.run(KubeClient(context, namespace), asked, progress)

    def submit(self, command: str | Sequence[str], **options: Unpack[JobOptions]) -> JobFuture:
        """Submit a job, and return its future. ``options``: see `JobOptions`.

        ``command`` is a list of words, or a text that is split as a shell would (`shlex`); no shell runs it.

        Raises ArgumentError, ClosedError. The future raises JobFailed, JobRefused, JobLost; EndedError when the
        MiniCluster ends first; ApiError when it can't be reached for minutes.
        """
        job = job_of(words_of(command), options)

        def cancel() -> None:
            self._session.say(submission, submission.cancellation())

        submission = Submission(job, JobFuture(cancel))
        self._session.send(submission)
        return submission.future

    def executor(self, **options: Unpack[JobOptions]) -> CommandExecutor:
        """Return an executor of commands; each of its jobs has these ``options`` of `submit`."""
        return CommandExecutor(self.submit, options)

    def jobs(self, *, ended: bool = False, timeout: float | None = 60) -> list[Job]:
        """Return the jobs in the queue, the oldest first; with ``ended`` also the jobs that have ended.

        Raises WaitTimeoutError, EndedError.
        """
        return jobs_of(self._ask(Question("list", ended), timeout))

    def flux(self, *words: str, timeout: float | None = 300) -> Result:
        """Wait for the lead, and run a flux command there to its end. A failure is no error: see its exit code.

        Raises WaitTimeoutError when no lead is ready within ``timeout``, EndedError.
        """
        lead = wait_for_lead(self._kube, self.name, timeout)
        return finish(self._kube.run(lead.pod.name, lead.pod.runner, lead.flux_words(*words)))

    def logs(self, container: str = "", *, node: str = "", follow: bool = False) -> Iterator[str]:
        """Yield the lines of the lead's log, or of another container of its pod.

        ``node`` is another node, by its rank, or its name in Flux: "3", "gpu-1".
        With ``follow`` it yields new lines until the MiniCluster ends, also from a pod that replaces this one.
        """
        return logs(self._kube, self.name, container, node=node, follow=follow)

    def scale(
        self,
        size: int | None,
        *,
        group: str = "",
        wait: bool = False,
        timeout: float | None = 600,
        progress: Progress | None = None,
    ) -> None:
        """Change the size, or that of a group, which may be 0; with ``wait`` return when these nodes are in Flux.

        With autoscaling, ``size`` is a request for at least that many nodes; None withdraws it. ``progress`` gets the
        number of nodes that are up, from another thread.
        Raises ReleaseError when the chart refuses, ArgumentError when the autoscaler does, WaitTimeoutError.
        """
        least = 0 if group else 1
        if size is not None and (not isinstance(size, int) or size < least):
            way = "" if group else "; delete() removes the MiniCluster"
            raise ArgumentError(f"size={size!r}: give a whole number, {least} or more{way}")
        ranks = ranks_of(self._kube, self.name, group) if group or wait else range(0)
        policy = policy_of(self._kube.get("configmap", f"{self.name}-config") or {}, group)
        if policy:
            self._request_size(size, group, timeout)
        elif size is None:
            raise ArgumentError(f"size=None: {self.name} has no autoscaler that could choose its size: give a number")
        else:
            release.resize(self._kube, self.release, size, group)
        if wait and size is not None:
            tell = (lambda up: progress(f"{up} nodes up")) if progress else None
            wanted = {"first": ranks.start, "more": bool(policy)}
            self._ask(Question("online", [size, len(ranks)], tell, **wanted), timeout)

    def _request_size(self, size: int | None, group: str, timeout: float | None) -> None:
        """Ask the autoscaler for a size. Raises ArgumentError."""
        lead = wait_for_lead(self._kube, self.name, timeout)
        wish = "auto" if size is None else str(size)
        words = [f"{lead.home}/bin/minicluster-scale", f"{group}={wish}" if group else wish]
        done = finish(self._kube.run(lead.pod.name, lead.pod.runner, words))
        if done.exit_code:
            why = done.stderr.strip().removeprefix("minicluster-scale: ")
            raise ArgumentError(f"size={size}: {self.name} sizes itself: {why}")

    def status(self) -> dict[str, Any]:
        """Return the document of `minicluster status NAME --output json`. Raises NotFoundError."""
        return status(self._kube, self.name)

    def port_forward(self, port: int, local_port: int = 0) -> PortForward:
        """Listen on a local port, any free one by default, that leads to a port of the lead. Raises ArgumentError."""
        if not isinstance(port, int) or not 0 < port < 65536:
            raise ArgumentError(f"port={port!r}: give a number from 1 to 65535")

        def connect() -> PodConnection:
            lead = wait_for_lead(self._kube, self.name, 60)
            return self._kube.connect(lead.pod.name, port)

        return PortForward(connect, local_port)

    def wait(
        self,
        until: Literal["quorum", "end"] = "quorum",
        timeout: float | None = None,
        progress: Progress | None = None,
    ) -> int | None:
        """Wait for the quorum or the end, whichever is first. To reach the quorum it wakes a sleeping MiniCluster.

        ``progress`` gets each new state, as `minicluster wait` prints it. Returns None at the quorum, and at the end
        the exit code of the work.
        Raises WaitTimeoutError; EndedError when it was deleted, or failed without an exit code.
        """
        if until not in ("quorum", "end"):
            raise ArgumentError(f"until={until!r}: give 'quorum' or 'end'")
        tell = StateTeller(SdkEvidence(self._kube), self.name, progress) if progress else None
        return wait_for(self._kube, self.name, until, timeout, tell)

    def delete(self, timeout: float = release.REMOVAL) -> None:
        """Uninstall the release, and return when its pods are gone. Raises ReleaseError."""
        self.close()
        release.uninstall(self._kube, self.release, timeout)

    def close(self) -> None:
        """Leave the MiniCluster as it is. Its jobs go on, but the futures of unfinished jobs raise ClosedError."""
        self._session.close(f"{self.name} was closed before this was over")
        self._kube.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Delete the MiniCluster if it was created here; otherwise only leave it."""
        if self._is_own:
            self.delete()
        else:
            self.close()

    def __repr__(self) -> str:
        """Name it."""
        return f"<MiniCluster {self.name} in {self._kube}>"

    def _ask(self, question: Question, timeout: float | None) -> Any:
        self._session.send(question)
        try:
            return question.answer.result(timeout)
        except TimeoutError as error:
            if isinstance(error, WaitTimeoutError):
                raise
            raise WaitTimeoutError(f"{self.name} in {self._kube}: no answer within {timeout} s") from None

    def _start_session(self, stop: threading.Event) -> Channel:
        lead = wait_for_lead(self._kube, self.name, None, stop)
        words = lead.flux_words("python", "-c", BOOT)
        return self._kube.run(lead.pod.name, lead.pod.runner, words, stdin=True)
