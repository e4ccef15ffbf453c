"""Finds the lead that can take commands: waits for a MiniCluster that starts, and wakes one that sleeps."""

from collections.abc import Callable, Mapping
from typing import Any

from minicluster.cluster.find import check_name
from minicluster.cluster.job import read_job
from minicluster.cluster.lead import Lead
from minicluster.errors import EndError, StateError
from minicluster.kube.port import KubePort
from minicluster.live.lookup import Cluster, find_cluster, refusals
from minicluster.live.start_watch import StartWatch
from minicluster.live.telling import describe, end_in_words, ended, see
from minicluster.live.wait import look_for
from minicluster.streams import Say

#: Seconds that a MiniCluster which starts, or was woken, has to reach its quorum
QUORUM_SECONDS = 600.0


def find_ready_lead(kubernetes: KubePort, name: str, say: Say, *, waits: bool = True) -> Lead:
    """Return the lead of a MiniCluster that has its quorum.

    Waits for a MiniCluster that starts, sleeps, or is in a queue of Kueue. Raises EndError when it can't start,
    StateError, StatusError; without ``waits`` at once.
    """
    return _find(kubernetes, name, lambda lead: lead.is_ready, say if waits else None)


def find_running_lead(kubernetes: KubePort, name: str, say: Say, *, waits: bool = True) -> Lead:
    """Return the lead as soon as its container runs; like find_ready_lead, without the quorum."""
    return _find(kubernetes, name, lambda lead: lead.is_running, say if waits else None)


def _find(kubernetes: KubePort, name: str, is_there: Callable[[Lead], bool], say: Say | None) -> Lead:
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
    found = read_job(job)
    return bool(found and (not found.is_suspended or found.is_asleep or found.queue))
