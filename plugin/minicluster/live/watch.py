"""Reads a MiniCluster whenever it may have changed: it is watched, so nothing asks again and again."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from minicluster.cluster.hosts import Host, lead_of
from minicluster.cluster.lead import Lead
from minicluster.cluster.node import Node
from minicluster.errors import DeadlineError, KubernetesError, RefusedError
from minicluster.kube.port import WATCH_SECONDS, KubePort, Object
from minicluster.live.lookup import Cluster, refusals
from minicluster.outage import OUTAGE_SECONDS, RETRY_SECONDS, Outage
from minicluster.streams import Say
from minicluster.terminal import Told

Seen = TypeVar("Seen")


class Look(NamedTuple):
    """A MiniCluster at one time."""

    job: Object  #: empty when there is none
    lead: Lead | None


def looks(cluster: Cluster, say: Say, every: float = WATCH_SECONDS) -> Iterator[Look]:
    """Yield a MiniCluster at once, whenever its Job or its lead's pod may have changed, and ``every`` so many seconds.

    The last look is at the deadline. It goes on after an outage of the API server, of which it tells.
    Raises DeadlineError at the deadline; AccessError when Kubernetes refuses, and when the outage takes too long.
    """
    return _looks(cluster, lead_of(cluster.name), lambda: Look(cluster.read_job(), cluster.read_lead()), say, every)


class NodeLook(NamedTuple):
    """A host of a MiniCluster at one time."""

    job: Object  #: that makes its pods; empty when there is none
    node: Node | None


def looks_at(cluster: Cluster, host: Host, say: Say) -> Iterator[NodeLook]:
    """Yield a host of a MiniCluster, as `looks` does the MiniCluster and its lead."""
    kubernetes = cluster.kubernetes
    return _looks(cluster, host, lambda: NodeLook(kubernetes.get("job", host.job), cluster.read_node(host)), say)


def _looks(
    cluster: Cluster, host: Host, look: Callable[[], Seen], say: Say, every: float = WATCH_SECONDS
) -> Iterator[Seen]:
    kubernetes = cluster.kubernetes
    outage = Outage()
    while True:
        begin = time.monotonic()
        with refusals(), _bridged(outage, kubernetes, say):
            for _ in kubernetes.changes(host.job, host.labels, every):
                seen = look()
                outage.end()
                yield seen
        if kubernetes.is_late:
            how = "stopped" if kubernetes.limit is None else f"gave up after {kubernetes.limit:g} s"
            raise DeadlineError(f"{cluster.name} in {kubernetes}: {how}")
        # a server that ends each watch at once must not be asked all the time
        time.sleep(max(0.0, RETRY_SECONDS - (time.monotonic() - begin)))


@contextmanager
def _bridged(outage: Outage, kubernetes: KubePort, say: Say) -> Iterator[None]:
    """Ignore errors while Kubernetes is away. Raises KubernetesError for a refusal, or after OUTAGE_SECONDS."""
    try:
        yield
    except KubernetesError as error:
        if kubernetes.is_late:
            return  # the deadline cut it off
        is_refusal = isinstance(error, RefusedError)
        if not outage.is_on and not is_refusal:
            say(Told(f"{error.reason}: trying again for {OUTAGE_SECONDS:g} s", "waits"))
        if is_refusal or not outage.is_forgiven(OUTAGE_SECONDS):
            raise
