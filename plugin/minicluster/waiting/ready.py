"""Finds a node that can take commands: the lead, which is waited for and woken, or the one that a person names."""

from collections.abc import Callable, Mapping
from typing import Any

from minicluster.cluster.find import Host, check_name, find_host
from minicluster.cluster.job import end_of, read_job
from minicluster.cluster.lead import Lead, Node
from minicluster.cluster.pods import queue_of, size_of
from minicluster.cluster.reasons import pod_with_reason, why_no_pod
from minicluster.cluster.without_flux import of_no_pod
from minicluster.console import streams
from minicluster.console.terminal import Progress
from minicluster.errors import DeadlineError, EndError, StateError
from minicluster.kube.port import KubePort
from minicluster.status.lookup import Cluster, find, find_cluster, refusals
from minicluster.status.reporter import describe, end_in_words, ended, news, see
from minicluster.waiting.wait import StartWatch, look_for, looks_at

#: Seconds that a MiniCluster which starts, or was woken, has to reach its quorum
QUORUM_SECONDS = 600.0


def find_ready_lead(kubernetes: KubePort, name: str, say: streams.Say, *, waits: bool = True) -> Lead:
    """Return the lead of a MiniCluster that has its quorum.

    Waits for a MiniCluster that starts, sleeps, or is in a queue of Kueue. Raises EndError when it can't start,
    StateError, StatusError; without ``waits`` at once.
    """
    return _find(kubernetes, name, lambda lead: lead.is_ready, say if waits else None)


def find_running_lead(kubernetes: KubePort, name: str, say: streams.Say, *, waits: bool = True) -> Lead:
    """Return the lead as soon as its container runs; like find_ready_lead, without the quorum."""
    return _find(kubernetes, name, lambda lead: lead.is_running, say if waits else None)


def _find(kubernetes: KubePort, name: str, is_there: Callable[[Lead], bool], say: streams.Say | None) -> Lead:
    check_name(name)
    with refusals():
        lead = Cluster(kubernetes, name).read_lead()
    # mostly this one request is enough
    if lead and is_there(lead):
        return lead
    cluster = find_cluster(kubernetes, name)
    with refusals():
        job = cluster.read_job()
        lead = lead or cluster.read_lead()
    name = cluster.name
    end = end_in_words(kubernetes, name, job, lead)
    if say and not end and _comes(job):
        end, lead = look_for(cluster.within(QUORUM_SECONDS), is_there, say, StartWatch(name))
    if end:
        raise EndError(ended(name, end, lead))
    if lead and is_there(lead):
        return lead
    state = ": ".join(filter(None, describe(kubernetes, see(kubernetes, name, job, lead))))
    raise StateError(f"{name} is {state}; `minicluster wait {name}` returns when it is ready")


def _comes(job: Mapping[str, Any]) -> bool:
    """Return whether a MiniCluster will have a lead without a person who resumes it."""
    its_job = read_job(job)
    return bool(its_job and (not its_job.is_suspended or its_job.is_asleep or its_job.queue))


def find_running_node(kubernetes: KubePort, name: str, text: str, say: streams.Say, *, waits: bool = True) -> Node:
    """Return the node that a text means, as soon as its container runs; for "" that is the lead.

    Waits for a pod that starts, and for a MiniCluster that sleeps. Raises StateError, StatusError; without ``waits`` at
    once.
    """
    host = None
    if text:
        its_cluster = find(kubernetes, name)
        name, host = its_cluster.name, find_host(its_cluster, text)
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


def _wait(cluster: Cluster, host: Host, say: streams.Say, *, waits: bool) -> Node:
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
                    say(Progress(why))
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
