"""A release that is removed after its use, also when a signal ends the use."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from minicluster import streams
from minicluster.errors import KubernetesError, StatusError, ToolError
from minicluster.kube.port import KubePort
from minicluster.lead.ask import LateError, SilentError, ask
from minicluster.live.lookup import Cluster
from minicluster.live.piped import STOP_PRESSES
from minicluster.pasted import Where, completed
from minicluster.release import helm, oneshot
from minicluster.release.oneshot import Oneshot
from minicluster.signals import handle_signals
from minicluster.streams import Say
from minicluster.terminal import Step, wrong

#: Seconds in which a lead that may not be ready can cancel its jobs
UNREADY_SECONDS = 2.0


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
        if count == 1 or interrupts >= STOP_PRESSES:
            # a later one too: Python may be about to wait for a command when the third comes
            raise Stopped(number, is_last=interrupts >= STOP_PRESSES)
        if number == signal.SIGINT:
            say("still removing: one more Ctrl-C leaves the rest behind")

    with handle_signals(stop), streams.until_unread(stop):
        yield


class TemporaryRelease:
    """A release from its install to its removal."""

    def __init__(self, kubernetes: KubePort, asked: Oneshot, say: Say) -> None:
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
            self._say(Step(f"installing {self.asked.name}", is_quiet=True))
            oneshot.install(self.kubernetes, self.asked, self._words)
        self._is_installed = True
        self._say(f"installed {self.asked.name} in {self.kubernetes}")
        return self._cluster

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
                self._say(Step(f"removing {self.asked.name}", "removing", is_quiet=True))
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
        self._say(wrong(self.left))

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
