"""Reads a MiniCluster whenever it may have changed: kubectl watches it, so nothing asks again and again."""

import selectors
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any, NamedTuple, TypeVar

from minicluster import streams
from minicluster.cluster.hosts import Host, lead_of
from minicluster.cluster.lead import Lead
from minicluster.cluster.node import Node
from minicluster.errors import DeadlineError
from minicluster.kubectl import CommandError, Kubernetes
from minicluster.live.lookup import Cluster, refusals
from minicluster.outage import PATIENCE, Outage

#: Seconds: until it is read in any case; until Kubernetes is asked again after an error
LOOK, RETRY = 30.0, 1.0
Seen = TypeVar("Seen")


class Look(NamedTuple):
    """A MiniCluster at one time."""

    job: dict[str, Any]  #: empty when there is none
    lead: Lead | None


def looks(cluster: Cluster) -> Iterator[Look]:
    """Yield a MiniCluster at once, whenever its Job or its lead's pod may have changed, and after LOOK seconds.

    The last look is at the deadline. It goes on after an outage of the API server. Raises DeadlineError at the
    deadline; StateError when Kubernetes refuses, and when the outage takes too long.
    """
    return _looks(cluster, lead_of(cluster.name), lambda: Look(cluster.read_job(), cluster.read_lead()))


class NodeLook(NamedTuple):
    """A host of a MiniCluster at one time."""

    job: dict[str, Any]  #: that makes its pods; empty when there is none
    node: Node | None


def looks_at(cluster: Cluster, host: Host) -> Iterator[NodeLook]:
    """Yield a host of a MiniCluster, as `looks` does the MiniCluster and its lead."""
    return _looks(cluster, host, lambda: NodeLook(cluster.kubernetes.get("job", host.job), cluster.read_node(host)))


def _looks(cluster: Cluster, host: Host, look: Callable[[], Seen]) -> Iterator[Seen]:
    kubernetes = cluster.kubernetes
    outage = Outage()
    while True:
        begin = time.monotonic()
        with refusals(), _bridged(outage, kubernetes):
            for _ in _watch(kubernetes, host):
                seen = look()
                outage.end()
                yield seen
        if kubernetes.is_late:
            raise DeadlineError(f"{cluster.name} in {kubernetes}: gave up after {kubernetes.limit:g} s")
        # a server that ends each watch at once must not be asked all the time
        time.sleep(max(0.0, RETRY - (time.monotonic() - begin)))


@contextmanager
def _bridged(outage: Outage, kubernetes: Kubernetes) -> Iterator[None]:
    """Ignore errors while Kubernetes is away. Raises CommandError for a refusal, or after PATIENCE."""
    try:
        yield
    except CommandError as error:
        if kubernetes.is_late:
            return  # the deadline cut it off
        if not outage.is_on and not error.is_forbidden:
            streams.say(f"{error.reason}: trying again for {PATIENCE:g} s")
        if error.is_forbidden or not outage.is_forgiven(PATIENCE):
            raise


def _watch(kubernetes: Kubernetes, host: Host) -> Iterator[None]:
    """Yield at each change that two watches report, until one of them ends. Raises CommandError when it failed."""
    end = kubernetes.deadline
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for which in (("job", host.job), ("pods", f"--selector={host.labels}")):
            stream = stack.enter_context(closing(kubernetes.stream("get", *which, "--watch", "--output=name")))
            selector.register(stream, selectors.EVENT_READ)
        is_first = True  # the first look is due even when no time is left
        while True:
            left = LOOK if is_first or end is None else min(LOOK, end - time.monotonic())
            for key, _ in selector.select(max(0.0, left)):
                if _has_ended(key.fileobj):
                    yield
                    return
            is_last = not is_first and end is not None and time.monotonic() >= end
            is_first = False
            yield
            if is_last:
                return


def _has_ended(watch: Any) -> bool:
    """Read a watch; return whether it ended. Raises CommandError if it failed, unless its object is gone."""
    if watch.read() is not None:
        return False
    error = watch.error()
    if error and "(NotFound)" not in error.reason:
        raise error
    return True
