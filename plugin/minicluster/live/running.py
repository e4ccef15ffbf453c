"""Finds a node that can take commands: the lead, or the one that a person names."""

from collections.abc import Mapping
from typing import Any

from minicluster import streams
from minicluster.cluster.groups import queue_of, size_of
from minicluster.cluster.hosts import Host, find_host
from minicluster.cluster.job import end_of
from minicluster.cluster.node import Node
from minicluster.cluster.reasons import pod_with_reason, why_no_pod
from minicluster.cluster.without_flux import of_no_pod
from minicluster.errors import DeadlineError, StateError
from minicluster.kube.port import KubePort
from minicluster.live.lookup import Cluster, find, refusals
from minicluster.live.ready import QUORUM_SECONDS, find_running_lead
from minicluster.live.start_watch import StartWatch
from minicluster.live.telling import news
from minicluster.live.watch import looks_at
from minicluster.streams import Say
from minicluster.terminal import Step


def find_running_node(kubernetes: KubePort, name: str, text: str, say: Say, *, waits: bool = True) -> Node:
    """Return the node that a text means, as soon as its container runs; for "" that is the lead.

    Waits for a pod that starts, and for a MiniCluster that sleeps. Raises StateError, StatusError; without ``waits`` at
    once.
    """
    host = None
    if text:
        found = find(kubernetes, name)
        name, host = found.name, find_host(found, text)
    if host is None or host.is_lead:
        return find_running_lead(kubernetes, name, say, waits=waits)
    cluster = Cluster(kubernetes, name)
    with refusals():
        node = cluster.read_node(host)
    if node and node.is_running:
        return node
    # this wakes a MiniCluster that sleeps, and refuses one that has ended
    find_running_lead(kubernetes, name, say, waits=waits)
    return _wait(cluster.within(QUORUM_SECONDS), host, say, waits=waits)


def _wait(cluster: Cluster, host: Host, say: Say, *, waits: bool) -> Node:
    """Return a node as soon as its container runs. Raises StateError if it won't; without ``waits`` at once."""
    why, check = "", StartWatch(cluster.name)
    try:
        with streams.waiting():
            for job, node in looks_at(cluster, host, say):
                if node and node.is_running:
                    return node
                told = news(why)
                why, comes = absence(cluster.kubernetes, host, job, node)
                if not (waits and comes):
                    raise StateError(why)
                if news(why) != told:
                    say(Step(why))
                check.see(pod_with_reason(cluster.kubernetes, node.pod) if node else None, str(host))
    except DeadlineError as error:
        raise StateError(f"{error}: {why}") from None
    raise AssertionError  # looks_at only ends with an error


def absence(kube: KubePort, host: Host, job: Mapping[str, Any], node: Node | None) -> tuple[str, bool]:
    """Return why a host has no container that runs, as a sentence, and whether one comes by itself."""
    end = end_of(host.job, job)
    if end:
        return f"{host} has ended: {': '.join(filter(None, end))}", False
    size = size_of(job)
    if job["spec"].get("suspend") and (queue := queue_of(job)):
        return f"{host} has no pod: Kueue's queue {queue} holds the Job {host.job}", True
    if job["spec"].get("suspend") and not host.group:
        return f"{host} has no pod: the Job {host.job} is suspended", True
    if host.index >= size:
        return (
            f"{host} has no pod, because the size is {size}: `minicluster scale {host.scaled(host.index + 1)}`",
            False,
        )
    if node is None:
        return of_no_pod(f"{host} has no pod", host.job, why_no_pod(kube, host.job)), True
    return f"{host} is {pod_with_reason(kube, node.pod).why}", True
