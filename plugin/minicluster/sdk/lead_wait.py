"""Waits for the lead, and logs what it waits for: else a first `result()` would be silent for minutes."""

import logging
import threading

from minicluster.cluster.lead import Lead
from minicluster.errors import EndError
from minicluster.kube.port import KubePort
from minicluster.live.lookup import Cluster
from minicluster.live.telling import ended
from minicluster.live.wait import is_ready, look_for

#: Seconds of a wait that nothing is said about, and between two looks
QUIET_SECONDS = 10.0
LOG = logging.getLogger("minicluster.sdk")


def wait_for_lead(kube: KubePort, name: str, seconds: float | None = None, stop: threading.Event | None = None) -> Lead:
    """Return the lead as soon as it is ready. A MiniCluster that sleeps is woken.

    Each state that it is in meanwhile is logged once, as a warning, in the words of `minicluster wait`.
    Raises EndError; DeadlineError when the seconds are over, or ``stop`` is set; AccessError, KubernetesError.
    """
    cluster = Cluster(kube.within(seconds, stop), name)
    lead = cluster.read_lead()
    # mostly this one request is enough
    if lead and lead.is_ready:
        return lead
    told = set[str]()

    def log(text: str) -> None:
        if text not in told:
            told.add(text)
            LOG.warning("waiting for %s", text)

    end, lead = look_for(cluster, is_ready, log, quiet=QUIET_SECONDS)
    if end or not lead:
        raise EndError(ended(name, end or ("Gone", ""), lead))
    return lead
