"""Nodes that are about to leave are drained; scale to zero: an idle cluster's Job is suspended, and resumed.

A suspended Job has no pods. The queue is on a claim, so it is still there when somebody wakes the cluster.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Collection, Container, Mapping, NamedTuple

from autoscale import Policy, Snapshot
from kube import Kube, KubeError
from offers import undrain
from state import CHECK_REASON, MEMORY_REASON, Nodes, nodes, to_idset

#: The reason of the agent's drains. After a restart, the agent or a new lead undrains these nodes
SHRINK_REASON = "minicluster: scaling down"
#: Annotation of the Job that says who suspended it, and its first words if the agent did
SUSPENDED = "minicluster/suspended"
IDLE = "idle for "


def drain(handle: Any, ranks: Collection[int]) -> None:
    """Let no more jobs start on ranks, with SHRINK_REASON. A drained rank keeps its own reason. Raises OSError."""
    if ranks:
        targets = {"targets": to_idset(ranks), "reason": SHRINK_REASON, "mode": "update"}
        handle.rpc("resource.drain", targets, nodeid=0).get()


def undrain_ours(handle: Any, nodes: Nodes, gone: Container[int], leaving: Container[int] = ()) -> None:
    """Undrain the ranks that were drained with SHRINK_REASON, but for those that have no pod now or are ``leaving``.

    Of those whose check failed, or whose memory was short, the ones without a pod: the next pod decides.
    Raises OSError.
    """
    stays = [rank for rank, reason in nodes.drained.items() if reason == SHRINK_REASON and rank not in gone]
    ours = [rank for rank in stays if rank not in leaving]
    unfit = (CHECK_REASON, MEMORY_REASON)
    out = [rank for rank, reason in nodes.drained.items() if reason.startswith(unfit) and rank in gone]
    undrain(handle, ours + out)


class Use(NamedTuple):
    """The work that Flux has."""

    active: int  #: jobs that have not ended: held, depending, waiting and running ones
    newest: int  #: id of the last job, 0 before the first one
    runs: bool  #: whether the quorum was reached, so that jobs run


def use(handle: Any) -> Use:
    """Ask Flux for the work that it has. Raises OSError."""
    # not job-list, which learns of a new job a moment later
    stats = handle.rpc("job-manager.stats-get", {}, nodeid=0).get()
    runs = handle.rpc("state-machine.get").get()["state"] == "run"
    return Use(stats["active_jobs"], stats["max_jobid"], runs)


@dataclass
class Idle:
    """Remembers since when nothing needs the cluster. After a restart the window begins again."""

    since: float | None = None
    newest: int = 0

    def left(self, policy: Policy, snapshot: Snapshot, nodes_use: Use) -> float:
        """Return the seconds until the cluster is to be suspended, infinite while something needs it."""
        # a job may have come and gone since the last look
        is_same, self.newest = nodes_use.newest == self.newest, nodes_use.newest
        if nodes_use.active or not nodes_use.runs or max(snapshot.wishes(policy).values()) > policy.min:
            self.since = None
            return math.inf
        if self.since is None or not is_same:
            self.since = snapshot.now
        return max(0.0, self.since + policy.suspend - snapshot.now)


def is_asleep(job: Mapping[str, Any]) -> bool:
    """Say whether an agent suspended a Job, and nobody has resumed it."""
    return bool(job["spec"].get("suspend")) and has_slept(job)


def has_slept(job: Mapping[str, Any]) -> bool:
    """Say whether an agent suspended a Job, which may have been resumed since."""
    text: str = job["metadata"].get("annotations", {}).get(SUSPENDED, "")
    return text.startswith(IDLE)


def suspend(
    handle: Any, kube: Kube, job: Mapping[str, Any], policy: Policy, gone: Container[int]
) -> dict[str, Any] | None:
    """Suspend the Job; it wakes with its least size. Return it, or None if a flux job was submitted meanwhile.

    Until then all nodes are drained but the ``gone`` ones, also those of bursts: a job that is submitted now waits in
    the queue. Raises KubeError, OSError; jobs then start as before.
    """
    after = None
    drain(handle, [rank for rank in nodes(handle).all if rank not in gone])
    try:
        if not use(handle).active:
            after = kube.suspend(job, policy.min, {SUSPENDED: f"{IDLE}{policy.suspend:g} s"})
    finally:
        if after is None:
            undrain_ours(handle, nodes(handle), gone)
    return after


def resume(kube: Kube) -> bool:
    """Resume the Job, unless somebody has, or it is suspended for another reason; return whether. Raises KubeError."""
    for tries_left in (2, 1, 0):
        job = kube.get_job()
        if not is_asleep(job):
            return False
        try:
            kube.resume(job, {SUSPENDED: None})
        except KubeError:
            # the Job's controller may have changed it at the same time
            if not tries_left:
                raise
        else:
            break
    return True
