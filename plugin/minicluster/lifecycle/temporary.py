"""A release for one use: installed, followed to the end of its work, and removed, also when a signal ends the use."""

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from types import FrameType
from typing import IO, Any

from minicluster.cluster.lead import Lead, end_with
from minicluster.console import streams
from minicluster.console.messages import Where, completed
from minicluster.console.signals import STOP_PRESSES, handle_signals
from minicluster.console.terminal import Progress, StyledText, failure
from minicluster.errors import AccessError, AwayError, KubernetesError, StateError, StatusError, ToolError
from minicluster.exec.upload import Upload
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.port import KubePort, Object
from minicluster.lead.ask import LateError, SilentError, ask
from minicluster.lifecycle.single_job import LeadLog, PassedOn, Write, run_job
from minicluster.release import helm, oneshot
from minicluster.status.lookup import Cluster
from minicluster.status.reported import Row
from minicluster.status.reporter import StateReporter, end_in_words
from minicluster.waiting.wait import End, StartWatch, end_of_work, looks, ready_lead

#: Seconds in which a lead that may not be ready can cancel its jobs
UNREADY_SECONDS = 2.0


class Stopped(KeyboardInterrupt):
    """A signal told us to stop."""

    def __init__(self, number: int, *, is_last: bool) -> None:
        """Keep the signal's number, and whether the removal is given up, too."""
        super().__init__(number)
        self.number, self.is_last = number, is_last


@contextmanager
def stoppable(say: streams.Say) -> Iterator[None]:
    """Raise Stopped at the first signal that ends a program, and at the third Ctrl-C. For the main thread.

    The same when nobody reads our output any more. Signals after the first don't disturb the removal.
    """
    count = interrupts = 0

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal count, interrupts
        count += 1
        interrupts += number == signal.SIGINT
        if count == 1 or interrupts >= STOP_PRESSES:
            # a later one too: Python may be about to wait for a command when the third comes
            raise Stopped(number, is_last=interrupts >= STOP_PRESSES)
        if number == signal.SIGINT:
            say("still removing: one more Ctrl-C leaves the rest behind")

    with handle_signals(stop), streams.until_unread(stop):
        yield


class TemporaryRelease:
    """A release from its install to its removal."""

    def __init__(self, kubernetes: KubePort, asked: oneshot.Oneshot, say: streams.Say) -> None:
        """Install nothing yet. The time that it has begins here. Raises ToolError, SpecError for a refusal."""
        self.kubernetes, self.asked, self._say = kubernetes, asked, say
        cluster, self._words = oneshot.planned(asked)
        self._cluster = Cluster(kubernetes.within(asked.seconds), cluster)
        self._is_installed = False
        self.left = ""  #: why it could not be removed
        self.has_ended = False  #: whether its work has, so that there is nothing to cancel

    def install(self) -> Cluster:
        """Install it, and return its MiniCluster, whose deadline is that of the release. Raises ToolError."""
        with streams.waiting():
            self._say(Progress(f"installing {self.asked.name}", is_quiet=True))
            oneshot.install(self.kubernetes, self.asked, self._words)
        self._is_installed = True
        self._say(f"installed {self.asked.name} in {self.kubernetes}")
        return self._cluster

    def run_job(self, words: Sequence[str], output: IO[bytes], say: streams.Say) -> tuple[Row, list[Any]]:
        """Submit a job, and return what the report says of it at its end, and its events (single_job.py)."""
        return run_job(self._cluster, words, output, say)

    def leave(self, *, keeps: bool) -> None:
        """Remove it; with ``keeps`` it stays if its work has ended."""
        if self.has_ended and keeps:
            self._say(f"{self.asked.name} stays: {self.way_out}")
        else:
            self.remove()

    def remove(self) -> None:
        """Cancel the work and remove the release. A failure is only told; only the third Ctrl-C stops it."""
        try:
            self._try_to_remove()
        except Stopped as stopped:
            if stopped.is_last:
                self._say_left("stopped")
                raise
            self.remove()

    def _try_to_remove(self) -> None:
        try:
            with streams.waiting():
                if self._is_installed and not self.has_ended:
                    self._say(f"removing {self.asked.name}")
                    self._cancel()
                self._say(Progress(f"removing {self.asked.name}", "removing", is_quiet=True))
                is_over = self.has_ended and self.asked.is_made_up
                if is_over or oneshot.is_there(self.kubernetes, self.asked):
                    self._is_installed = True
                    # nobody waits for the end of pods that no other release can meet: brokers that were told to stop
                    # as they started take their ten seconds
                    oneshot.remove(self.kubernetes, self.asked, waits=not self.asked.is_made_up)
        except ToolError as error:
            if self._is_installed:
                self._say_left(helm.explain(error))

    def _cancel(self) -> None:
        """Cancel all jobs, if there is a lead that can do that: pods that are told to stop would wait for them."""
        try:
            lead = Cluster(self.kubernetes, self._cluster.name).read_lead()
            # Kubernetes may have yet to see that it is ready
            if lead and lead.is_running:
                kubernetes = self.kubernetes.within(None if lead.is_ready else UNREADY_SECONDS)
                ask(kubernetes, lead.pod, "cancellation", lead.flux_words("cancel", "--all"))
        except (KubernetesError, ToolError, StatusError, SilentError, LateError):
            return  # the pods' own stop cancels them

    def _say_left(self, why: str) -> None:
        self.left = f"{self.asked.name} is left in {self.kubernetes}: {why}: {self.way_out}"
        self._say(failure(self.left))

    @property
    def way_out(self) -> str:
        """Return, in words, the command that removes it."""
        where = Where(self.kubernetes.namespace, self.kubernetes.asked_context)
        return f"`{completed(f'helm uninstall {self.asked.name}', where)}` removes it"

    @property
    def goes_on(self) -> str:
        """Return what the user can do about work that goes on without this client."""
        name = self.asked.name
        logs = f"`minicluster logs {name} -f` shows its log"
        return f"{name} goes on in {self.kubernetes}: {logs}, {self.way_out}"


#: Seconds for which nobody is asked why it is not there yet: most starts take no longer, and the questions delay them
START_QUIET_SECONDS = 2.0


def _run_once(release: TemporaryRelease, say: streams.Say, write: Write, *, keeps: bool) -> End:
    """Install a release, write its lead's log until the work has ended, remove it; return how the work ended.

    With ``keeps`` a release whose work has ended stays, and so does one that can't be seen any more, as its work goes
    on: that raises StateError. Else it is removed, whatever is raised: DeadlineError at the deadline, EndError for a
    lead that can't start, and for an end without an exit code; ToolError for a refusal.
    """
    goes_on = False
    try:
        cluster = release.install()
        job, lead = _follow_to_end(cluster, say, write)
        release.has_ended = True
        # how it ended may be read after the deadline, too
        how = end_in_words(release.kubernetes, cluster.name, job, lead)
        assert how  # it was waited for
        end = end_of_work(cluster.name, how, lead)
        say(StyledText(end.text, "wrong" if end.code else "well"))
    except AccessError as error:
        goes_on = isinstance(error.cause, AwayError) and not release.has_ended
        if goes_on:
            raise StateError(f"{error.cause.reason}: {release.goes_on}") from None
        raise
    finally:
        if not goes_on:
            release.leave(keeps=keeps)
    return end


def run_release(  # noqa: PLR0913 - where, what, with what, and where its output goes
    kubernetes: Kubernetes,
    asked: oneshot.Oneshot,
    upload: Upload | None,
    say: streams.Say,
    write: Write,
    *,
    keeps: bool = False,
) -> tuple[int, str]:
    """Run a command in a release of its own; return its exit code, and what is left of the release."""
    if upload:
        return _run_uploaded(kubernetes, asked, upload, say, write, keeps=keeps)
    release = TemporaryRelease(kubernetes, asked, say)
    return _run_once(release, say, write, keeps=keeps).code, release.left


def _run_uploaded(  # noqa: PLR0913 - the same
    kubernetes: Kubernetes, asked: oneshot.Oneshot, upload: Upload, say: streams.Say, write: Write, *, keeps: bool
) -> tuple[int, str]:
    """Run a command as `_run_once` does, on nodes that have a folder of this machine; what is new there comes back.

    The release has no work of its own: it gets a job.
    """
    upload.check()
    words = oneshot.job_of(asked, "--upload").words
    release = TemporaryRelease(kubernetes, replace(asked, is_idle=True), say)
    try:
        cluster = release.install()
        lead = ready_lead(cluster, say, StartWatch(cluster.name))
        brought = upload.bring(kubernetes, lead, say, waits=True)
        job, _ = release.run_job([*brought.options, *words], PassedOn(write), say)
        release.has_ended = True
        code = 1 if job["exit_code"] is None else int(job["exit_code"])
        say(StyledText(f"job {job['id']} of {cluster.name} has ended (exit code {code})", "wrong" if code else "well"))
        upload.fetch(kubernetes, lead, brought, say)
    finally:
        release.leave(keeps=keeps)
    return code, release.left


def _follow_to_end(cluster: Cluster, say: streams.Say, write: Write) -> tuple[Object, Lead | None]:
    """Write the log of the lead until the work has ended; return the Job and the lead then.

    `logs.follow` waits for new lines. This watches the other pods meanwhile, which may never start, so a thread reads
    the log. Each new state is said until the quorum, or the first line: only a job has one. Raises DeadlineError, and
    EndError for a lead that can't start.
    """
    tell, check = StateReporter(cluster.kubernetes, cluster.name, say), StartWatch(cluster.name)
    begin = time.monotonic()
    with tell.waiting(), closing(LeadLog(cluster.kubernetes, write, say)) as log:
        for job, lead in looks(cluster, say):
            log.see(lead)
            if end_with(cluster.name, job, lead):
                log.finish(lead)
                return job, lead
            is_ready = bool(lead and lead.is_ready)
            if log.has_begun:
                tell.forget()
            elif is_ready or time.monotonic() - begin < START_QUIET_SECONDS:
                tell.quietly("Running" if is_ready else "Starting")
                continue
            if not is_ready:
                check(tell(job, lead, is_quiet=log.has_begun))
    raise AssertionError  # looks only ends with an error
