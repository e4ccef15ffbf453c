"""Finds the lead again after the connection to it has broken, as long as an outage may take."""

import time
from collections.abc import Callable
from typing import TypeVar

from minicluster.cluster.lead import Lead
from minicluster.errors import AccessError, AwayError, RefusedError, StateError
from minicluster.kube.port import KubePort
from minicluster.lead.ask import SilentError
from minicluster.live.lookup import GOES_ON
from minicluster.live.piped import CutError
from minicluster.live.ready import find_ready_lead
from minicluster.outage import OUTAGE_SECONDS, RETRY_SECONDS, Outage
from minicluster.streams import Say
from minicluster.terminal import Told

Found = TypeVar("Found")


class Reconnection:
    """What is known of the broken connections of one command."""

    def __init__(self, kubernetes: KubePort, name: str, say: Say) -> None:
        """Know of none."""
        self._kubernetes, self._name, self._say = kubernetes, name, say
        self._outage = Outage()

    def ask(self, cut: CutError, question: Callable[[Lead], Found]) -> tuple[Lead, Found]:
        """Return the lead, and its answer to a question. It tells of an outage.

        Raises StateError when that takes too long, or the MiniCluster has ended, and AccessError.
        """
        if cut.process:
            self._outage.end()
        else:
            self._pause(cut.reason)
        while True:
            try:
                lead = find_ready_lead(self._kubernetes, self._name, self._say)
                return lead, question(lead)
            except AccessError as error:
                if isinstance(error.cause, RefusedError):
                    raise
                self._pause(error.cause.reason)
            except (AwayError, SilentError) as error:
                self._pause(error.reason)

    def _pause(self, why: str) -> None:
        if not self._outage.is_on:
            self._say(Told(f"{why}: trying again for {OUTAGE_SECONDS:g} s", "waits"))
        if not self._outage.is_forgiven(OUTAGE_SECONDS):
            raise StateError(f"{why}: {GOES_ON}")
        time.sleep(RETRY_SECONDS)
