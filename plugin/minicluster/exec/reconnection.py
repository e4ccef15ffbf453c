"""Finds the lead again after the connection to it has broken, as long as an outage may take."""

import time
from collections.abc import Callable
from typing import TypeVar

from minicluster.cluster.lead import Lead
from minicluster.console.streams import Say
from minicluster.errors import AccessError, AwayError, RefusedError, StateError
from minicluster.exec.piped import CutError
from minicluster.kube.outage import RETRY_SECONDS, Outage
from minicluster.kube.port import KubePort
from minicluster.lead.ask import SilentError
from minicluster.waiting.ready import find_ready_lead

Answer = TypeVar("Answer")


class Reconnection:
    """What is known of the broken connections of one command; ``goes_on`` says what the user can do without it."""

    def __init__(self, kubernetes: KubePort, name: str, say: Say, goes_on: Callable[[], str]) -> None:
        self._kubernetes, self._name, self._say, self._goes_on = kubernetes, name, say, goes_on
        self._outage = Outage(say)

    def ask(self, cut: CutError, question: Callable[[Lead], Answer]) -> tuple[Lead, Answer]:
        """Return the lead, and its answer to a question. It tells of an outage.

        Raises StateError when that takes too long, is refused, or the MiniCluster has ended.
        """
        if cut.process:
            self._outage.end()
        else:
            self._pause(cut.reason)
        try:
            while True:
                try:
                    lead = find_ready_lead(self._kubernetes, self._name, self._say)
                    return lead, question(lead)
                except AccessError as error:
                    if isinstance(error.cause, RefusedError):
                        raise StateError(f"{error}: {self._goes_on()}") from None
                    self._pause(error.cause.reason)
                except (AwayError, SilentError) as error:
                    self._pause(error.reason)
        except KeyboardInterrupt:
            self._say(self._goes_on())
            raise

    def _pause(self, why: str) -> None:
        if not self._outage.bears(why):
            raise StateError(f"{why}: {self._goes_on()}")
        time.sleep(RETRY_SECONDS)


def job_goes_on(name: str, job: str, shows: str) -> str:
    """Return what the user can do about a job of a MiniCluster, "" for one whose id isn't known.

    ``shows`` are the words of the command that shows its output.
    """
    flux = f"`minicluster flux {name} --"
    if job:
        return f"job {job} goes on: `minicluster {shows}` shows its output, {flux} cancel {job}` ends it"
    return f"what was submitted goes on: {flux} jobs` shows it, {flux} cancel ID` ends it"
