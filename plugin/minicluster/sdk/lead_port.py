"""Connections to a port of the lead, whichever pod that is."""

import threading
from contextlib import suppress

from minicluster.errors import AwayError
from minicluster.kube.port import Forward, KubePort, PodConnection
from minicluster.sdk.exceptions import translated
from minicluster.sdk.lead_wait import wait_for_lead

#: Seconds in which there must be a lead
LEAD_SECONDS = 60.0


class LeadPort:
    """A port of the lead; the connections to one pod share a kubectl."""

    def __init__(self, kube: KubePort, name: str, port: int) -> None:
        self._kube, self._name, self._port = kube, name, port
        self._forward: Forward | None = None
        self._lock = threading.Lock()

    def connect(self) -> PodConnection:
        """Wait for the lead, and return a new connection. Raises SdkError."""
        with translated(), self._lock:
            pod = wait_for_lead(self._kube, self._name, LEAD_SECONDS).pod.name
            if self._forward and self._forward.is_on and self._forward.pod == pod:
                with suppress(AwayError):  # it has just ended
                    return self._forward.connect()
            self._end()
            self._forward = self._kube.forward(pod, self._port)
            return self._forward.connect()

    def close(self) -> None:
        """End all connections."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._forward:
            self._forward.close()
            self._forward = None
