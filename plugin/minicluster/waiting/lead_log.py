"""The log of the lead while something else is waited for: a thread writes each line when it is there."""

import threading
import time
from collections.abc import Callable
from typing import Self

from minicluster.cluster.lead import Lead
from minicluster.console.streams import Say
from minicluster.errors import StateError
from minicluster.kube.outage import RETRY_SECONDS
from minicluster.kube.port import KubePort
from minicluster.waiting.logs import FollowedLog

#: Gets the bytes of a log
Write = Callable[[bytes], object]
#: Seconds for the rest of a log whose container has ended
LAST_LINES_SECONDS = 10.0
#: Seconds for a thread that is told to stop
LEAVE_SECONDS = 2.0


class LeadLog:
    """Writes the log of each lead from its first line on. Without a log the rest goes on, and why is said."""

    def __init__(self, kubernetes: KubePort, write: Write, say: Say) -> None:
        self._stop = threading.Event()
        self._log = FollowedLog(kubernetes.within(None, self._stop), "", "the lead", say)
        self._write, self._say = write, say
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._uid, self._ended = "", 0.0  # of the pod that was read last, and when its log ended
        self.has_begun = False  #: whether a line was there

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join(LEAVE_SECONDS)

    def see(self, lead: Lead | None) -> None:
        """Follow the log of a lead that has begun. Raises the error of a line that could not be written."""
        if isinstance(self._error, StateError):
            return
        if self._error:
            raise self._error
        is_read = self._thread and self._thread.is_alive()
        # most often a log ends because its container has, which Kubernetes tells a moment later
        is_over = lead and lead.uid == self._uid and time.monotonic() - self._ended < RETRY_SECONDS
        if lead and lead.pod.phase != "Pending" and not (is_read or is_over):
            self._thread = threading.Thread(target=self._follow, args=(lead,), daemon=True)
            self._thread.start()

    def finish(self, lead: Lead | None) -> None:
        """Write the rest of the log of a lead that has ended. Raises the same as `see`."""
        if self._thread:
            self._thread.join(LAST_LINES_SECONDS)
            if self._thread.is_alive():
                # the connection hangs: two threads must not read one log
                self._end()
        if not self._error:
            self._read(lead, is_over=True)
        self.see(None)
        if self._error:
            self._say(str(self._error))

    def _follow(self, lead: Lead) -> None:
        self._read(lead, is_over=False)
        self._uid, self._ended = lead.uid, time.monotonic()

    def _read(self, lead: Lead | None, *, is_over: bool) -> None:
        try:
            for part in self._log.new(lead, is_over=is_over):
                if part.is_note:
                    self._say(part.text.decode(errors="replace"))
                    continue
                self.has_begun = True
                self._write(part.text)
        except Exception as error:
            # the main thread raises it
            self._error = error
