"""Runs a command in a MiniCluster of its own: installs it, waits, prints the log, removes it."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType

from minicluster import streams
from minicluster.cluster.lead import Lead
from minicluster.errors import StateError, StatusError, ToolError
from minicluster.kubectl import Kubernetes
from minicluster.live import logs
from minicluster.live.lookup import Cluster, find_cluster
from minicluster.live.run import PATIENCE as INTERRUPTS
from minicluster.live.run import SIGNAL_SECONDS, handle_signals
from minicluster.live.wait import look_for, wait
from minicluster.release import helm, oneshot
from minicluster.release.oneshot import Oneshot

Say = Callable[[str], None]
#: Seconds for which a pod may fail to start: a registry may be away for a moment
PATIENCE = 60.0


class Stopped(KeyboardInterrupt):
    """A signal told us to stop."""

    def __init__(self, number: int, *, is_last: bool) -> None:
        """Keep the signal's number, and whether the removal is given up, too."""
        super().__init__(number)
        self.number, self.is_last = number, is_last


@contextmanager
def stoppable(say: Say) -> Iterator[None]:
    """Raise Stopped at the first signal that ends a program, and at the third Ctrl-C. For the main thread.

    The same when nobody reads our output any more. Signals after the first don't disturb the removal.
    """
    count = interrupts = 0

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal count, interrupts
        count += 1
        interrupts += number == signal.SIGINT
        if count == 1 or interrupts == INTERRUPTS:
            raise Stopped(number, is_last=interrupts == INTERRUPTS)
        if number == signal.SIGINT:
            say("still removing: one more Ctrl-C leaves the rest behind")

    with handle_signals(stop), streams.until_unread(stop):
        yield


class StartWatch:
    """Tells whether the lead is ready, and ends the wait for one that can't start."""

    def __init__(self, name: str) -> None:
        """Know nothing yet."""
        self._name = name
        self._since: float | None = None

    def __call__(self, lead: Lead) -> bool:
        """Return whether the lead is ready. Raises StateError when it has not started for PATIENCE."""
        pod, now = lead.pod, time.monotonic()
        if not pod.is_stuck:
            self._since = None
            return lead.is_ready
        self._since = now if self._since is None else self._since
        # a name that is no image's gets no better
        if now - self._since >= PATIENCE or pod.reason == "InvalidImageName":
            raise StateError(
                f"{self._name} can't start: the lead is {pod.state}: {pod.message}: check the image's name, its pull "
                "secret and what the values mount"
            )
        return False


def run_once(kubernetes: Kubernetes, asked: Oneshot, say: Say, *, keeps: bool) -> int:
    """Install a release, print its lead's log until the work has ended, remove it; return the work's exit code.

    With ``keeps`` a release whose work has ended stays; else it is removed, whatever is raised: StateError at the
    deadline, for a lead that can't start, and for an end without an exit code; ToolError, SpecError for a refusal.
    """
    return _Run(kubernetes, asked, say).run(keeps=keeps)


class _Run:
    """A release from its install to its removal."""

    def __init__(self, kubernetes: Kubernetes, asked: Oneshot, say: Say) -> None:
        self._kubernetes, self._asked, self._say = kubernetes, asked, say
        self._timed = kubernetes.within(asked.seconds)
        self._is_installed = self._has_ended = False

    def run(self, *, keeps: bool) -> int:
        name, words = self._asked.name, oneshot.install_words(self._asked)
        try:
            oneshot.install(self._kubernetes, self._asked, words)
            self._is_installed = True
            self._say(f"installed {name} in {self._kubernetes}")
            cluster = find_cluster(self._kubernetes, name)
            self._print_to_end(replace(cluster, kubernetes=self._timed))
            self._has_ended = True
            return wait(cluster, "end", self._say)
        finally:
            if self._has_ended and keeps:
                self._say(f"{name} stays: {self._way_out}")
            else:
                self._remove()

    def _print_to_end(self, cluster: Cluster) -> None:
        """Say each new state until the quorum, then print the log of the lead until the work has ended.

        Without a log it waits all the same. Raises StateError at the deadline, and for a lead that can't start.
        """
        look_for(cluster, StartWatch(cluster.name), self._say)
        try:
            logs.print_to_end(cluster, "", self._say)
        except StateError as error:
            if cluster.kubernetes.is_late:
                raise
            self._say(str(error))
            look_for(cluster, None, self._say)

    def _remove(self) -> None:
        """Cancel the work and remove the release. A failure is only told; only the third Ctrl-C stops it."""
        try:
            self._try_to_remove()
        except Stopped as stopped:
            if stopped.is_last:
                self._say_left("stopped")
                raise
            self._remove()

    def _try_to_remove(self) -> None:
        try:
            if self._is_installed and not self._has_ended:
                self._say(f"removing {self._asked.name}")
                self._cancel()
            if oneshot.is_there(self._kubernetes, self._asked):
                self._is_installed = True
                helm.uninstall(self._kubernetes, self._asked.name, helm.REMOVAL)
        except ToolError as error:
            if self._is_installed:
                self._say_left(helm.explain(error))

    def _cancel(self) -> None:
        """Cancel all jobs, if there is a lead that can do that: pods that are told to stop would wait for them."""
        try:
            lead = find_cluster(self._kubernetes, self._asked.name).read_lead()
            if lead and lead.is_ready:
                words = (*lead.pod.exec_words(), *lead.flux_words("cancel", "--all"))
                self._kubernetes.kubectl(*words, seconds=SIGNAL_SECONDS)
        except (ToolError, StatusError):
            return  # the pods' own stop cancels them

    def _say_left(self, why: str) -> None:
        self._say(f"{self._asked.name} is left in {self._kubernetes}: {why}: {self._way_out}")

    @property
    def _way_out(self) -> str:
        where = {"--namespace": self._kubernetes.namespace, "--kube-context": self._kubernetes.context}
        options = "".join(f" {option} {value}" for option, value in where.items() if value)
        return f"`helm uninstall {self._asked.name}{options}` removes it"
