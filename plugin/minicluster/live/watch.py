"""Reads a MiniCluster whenever it may have changed: it is watched, so nothing asks again and again."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from minicluster.cluster.hosts import Host, lead_of
from minicluster.cluster.job import end_of
from minicluster.cluster.lead import Lead, read_lead
from minicluster.cluster.node import Node, read_node
from minicluster.errors import DeadlineError, KubernetesError, RefusedError
from minicluster.kube.port import WATCH_SECONDS, KubePort, Object
from minicluster.live.lookup import Cluster, refusals
from minicluster.outage import RETRY_SECONDS, Outage
from minicluster.streams import Say

Seen = TypeVar("Seen")


def looks(cluster: Cluster, say: Say, every: float = WATCH_SECONDS) -> Iterator[tuple[Object, Lead | None]]:
    """Yield a Job, empty when there is none, and its lead; at once, when they may have changed, and ``every`` seconds.

    The last look is at the deadline. It goes on after an outage of the API server, of which it tells.
    Raises DeadlineError at the deadline; AccessError when Kubernetes refuses, and when the outage takes too long.
    """
    return _looks(cluster, lead_of(cluster.name), read_lead, say, every)


def looks_at(cluster: Cluster, host: Host, say: Say) -> Iterator[tuple[Object, Node | None]]:
    """Yield the Job of a host and the host's node, as `looks` does those of the lead."""
    return _looks(cluster, host, lambda pods: read_node(pods, host.group, host.index), say, WATCH_SECONDS)


def _looks(
    cluster: Cluster, host: Host, read: Callable[[Object], Seen], say: Say, every: float
) -> Iterator[tuple[Object, Seen]]:
    kubernetes, outage = cluster.kubernetes, Outage(say)
    while True:
        begin = time.monotonic()
        with refusals(), _bridged(outage, kubernetes):
            for job, pods in kubernetes.sights(host.job, host.labels, every):
                # the end of a Job may be told before that of its pods
                node = read(kubernetes.select("pods", host.labels) if end_of(host.job, job) else pods)
                outage.end()
                yield job, node
        if kubernetes.is_late:
            how = "stopped" if kubernetes.limit is None else f"gave up after {kubernetes.limit:g} s"
            raise DeadlineError(f"{cluster.name} in {kubernetes}: {how}")
        # a server that ends each watch at once must not be asked all the time
        time.sleep(max(0.0, RETRY_SECONDS - (time.monotonic() - begin)))


@contextmanager
def _bridged(outage: Outage, kubernetes: KubePort) -> Iterator[None]:
    """Ignore errors while Kubernetes is away. Raises KubernetesError for a refusal, or after OUTAGE_SECONDS."""
    try:
        yield
    except KubernetesError as error:
        if kubernetes.is_late:
            return  # the deadline cut it off
        if isinstance(error, RefusedError) or not outage.bears(error.reason):
            raise
