"""Waits for the lead, and logs what it waits for: else a first `result()` would be silent for minutes."""

import logging
import threading
import time
from contextlib import suppress

from minicluster.cluster.lead import Lead
from minicluster.live.telling import StateTeller
from minicluster.sdk.client import KubeClient, Object
from minicluster.sdk.exceptions import ApiError
from minicluster.sdk.leads import leads
from minicluster.sdk.sdk_evidence import SdkEvidence

#: Seconds of a wait that nothing is said about, and between two looks
QUIET = 10.0
LOG = logging.getLogger("minicluster.sdk")


def wait_for_lead(kube: KubeClient, name: str, seconds: float | None, stop: threading.Event | None = None) -> Lead:
    """Return the lead as soon as it is ready. A MiniCluster that sleeps is woken. Raises what `leads` raises.

    Each state that the MiniCluster is in meanwhile is logged once, as a warning, in the words of `minicluster wait`.
    """
    begin, told = time.monotonic(), set[str]()

    def log(text: str) -> None:
        if text not in told:
            told.add(text)
            LOG.warning("waiting for %s", text)

    tell = StateTeller(SdkEvidence(kube), name, log)

    def tell_late(job: Object, lead: Lead | None) -> None:
        if time.monotonic() - begin >= QUIET:
            with suppress(ApiError):  # of a user who may not ask the lead
                tell(job, lead)

    found = leads(kube, name, seconds, stop, wakes=True, tell=tell_late, every=QUIET)
    return next(lead for lead in found if lead.is_ready)
