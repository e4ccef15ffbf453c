"""A MiniCluster at one time: its objects, its lead's answer unless the state is clear without it, and what it lacks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from minicluster.cluster import reasons
from minicluster.cluster.find import LiveCluster
from minicluster.cluster.job import KubernetesJob
from minicluster.cluster.pods import GroupNodes, Pod
from minicluster.cluster.troubles import explained, way_out
from minicluster.cluster.without_flux import state_of_silent_lead, state_without_flux
from minicluster.errors import KubernetesError
from minicluster.flux import to_idset
from minicluster.kube.port import KubePort
from minicluster.lead.ask import Answer, Question, SilentError, ask_status, read_answer
from minicluster.status.lookup import NEEDED_RIGHTS, find, refusals
from minicluster.status.table import duration


@dataclass(frozen=True)
class StatusSnapshot:
    """A MiniCluster at one time: its objects in Kubernetes, and the lead's answer if there is one."""

    name: str
    now: datetime
    pods: Mapping[int, Pod]  #: by index
    job: KubernetesJob | None  #: None when the user may not read jobs
    answer: Answer | None
    state: str = ""  #: set when there is no answer
    why: str = ""
    groups: Sequence[GroupNodes] = ()
    problems: Sequence[str] = ()  #: beside those that the lead tells

    @property
    def size(self) -> int:
        """The Job's number of pods; without a Job, the highest index and one."""
        if self.job:
            return self.job.size
        there = [pod.index for pod in self.pods.values() if not (pod.has_ended or pod.is_leaving)]
        return max(there or self.pods) + 1

    @property
    def max_size(self) -> int | None:
        """Own hosts in Flux's configuration; None when neither the Job nor the lead says how many."""
        if self.job:
            return self.job.max_size
        return self.answer.settings["max_size"] if self.answer else None

    @property
    def age(self) -> int:
        """Seconds."""
        created = self.job.created if self.job else min(pod.created for pod in self.pods.values())
        return max(0, int((self.now - created).total_seconds()))


def take_snapshot(kubernetes: KubePort, name: str, now: datetime) -> StatusSnapshot:
    """Return a MiniCluster as it is now, by its own name or its release's, with all that can be known of why.

    Raises StatusError, ToolError.
    """
    cluster = reasons.with_reasons(kubernetes, find(kubernetes, name))
    if cluster.job:
        ended = replace(cluster.job, end=reasons.why_failed(kubernetes, cluster.job, cluster.pods.get(0)))
        cluster = cluster._replace(job=ended)
    with refusals(NEEDED_RIGHTS):
        seen = snapshot(cluster, now, partial(ask_status, kubernetes))
    policy = seen.answer.settings["policy"] if seen.answer else None
    problems = (*of_services(kubernetes, cluster.name), *of_kueue(kubernetes, cluster, seen.now, policy))
    return replace(seen, problems=problems)


def snapshot(cluster: LiveCluster, now: datetime, ask: Question) -> StatusSnapshot:
    """Return a MiniCluster from its objects, and from the lead's answer unless the state is clear without it.

    ``now`` is by our clock. The lead's is that of the cluster, by which its objects have their times.
    """
    made = partial(StatusSnapshot, cluster.name, now, cluster.pods, cluster.job, groups=cluster.groups)
    known = state_without_flux(cluster, now)
    if known:
        return made(None, *known)
    try:
        answer = read_answer(ask(cluster.pods[0]))
        return replace(made(answer), now=answer.now or now)
    except SilentError as error:
        why = str(error)
    except ValueError as error:
        why = f"it printed no JSON: {error}"
    return made(None, *state_of_silent_lead(cluster.pods[0], why))


#: Conditions of a Deployment that is in trouble, with the status that says so
TROUBLES = (("ReplicaFailure", "True"), ("Progressing", "False"))


def of_services(kube: KubePort, name: str) -> Sequence[str]:
    """Return why the pod of the services is missing; nothing without services, or for a user who may not read them."""
    try:
        deployment = kube.get("deployment", f"{name}-services")
    except KubernetesError:
        return ()
    conditions = deployment.get("status", {}).get("conditions", []) if deployment else []
    said = [c.get("message", "") for kind in TROUBLES for c in conditions if (c["type"], c["status"]) == kind]
    return [": ".join(filter(None, ["the services have no pod", said[0], way_out("", said[0])]))] if said else ()


#: Kueue's limit by default (waitForPodsReady: timeout and recoveryTimeout), which only an administrator can read
LIMIT_SECONDS = 1800
#: When the autoscaler gives up pods by default (pod/agent/scaled_job.py)
GIVE_UP_SECONDS = 900
#: Seconds that pods may take to be ready before that is told
STARTING_SECONDS = 60


def of_kueue(kube: KubePort, cluster: LiveCluster, now: datetime, policy: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield what Kueue does about pods that are not ready, to a user who may read its Workloads.

    ``policy`` is the autoscaler's; None while it is off or unknown.
    """
    job = cluster.job
    if not job or job.end:
        return
    parts: list[tuple[str, str, KubernetesJob | GroupNodes, Mapping[int, Pod]]] = [
        ("", "", job, cluster.pods),
        *((f"group {group.name}: ", f"{group.name}=", group, group.pods) for group in cluster.groups),
    ]
    for label, size_of, one, pods in parts:
        if one.queue and one.uid and not one.is_suspended:
            ready = max(sum(pod.is_ready for pod in pods.values()), 0 if label else 1)
            scale = f"minicluster scale {cluster.name} {size_of}{ready}"
            yield from (f"{label}{text}" for text in _of_job(kube, one.uid, now, scale, policy))


def _of_job(kube: KubePort, uid: str, now: datetime, scale: str, policy: Mapping[str, Any] | None) -> Iterator[str]:
    try:
        workloads = kube.select(reasons.WORKLOADS, f"{reasons.JOB_UID}={uid}")
    except KubernetesError:
        return
    if before := reasons.evicted_before(workloads):
        why, time = before
        yield f"Kueue suspended all pods, and started them again at {time:%Y-%m-%d %H:%M:%S} UTC: {why}"
    lacks = reasons.unready(workloads)
    seconds = (now - lacks.since).total_seconds() if lacks else 0
    if lacks and seconds > STARTING_SECONDS:
        since = f"not all pods have been ready for {duration(seconds)} ({lacks.reason})"
        left = LIMIT_SECONDS - seconds
        if left > 0:
            way = _way(lacks, scale, policy)
            yield f"{since}: in {duration(left)}, by default, Kueue suspends all pods: {way}"
        else:
            yield f"{since}: Kueue's limit, {duration(LIMIT_SECONDS)} by default, is longer here, or off"


def _way(lacks: reasons.Unready, scale: str, policy: Mapping[str, Any] | None) -> str:
    """Return how pods that nobody can place don't end the others."""
    give_up = policy.get("give_up") if policy else 0
    give_up = GIVE_UP_SECONDS if give_up is None else give_up
    if lacks.is_elastic and give_up:
        return f"after {duration(give_up)} the autoscaler gives up those whose nodes are not in Flux"
    if lacks.is_elastic:
        return f"`{scale}` gives up the others"
    setting = "set recoveryTimeout to 0s" if lacks.reason == reasons.RECOVERY else "give timeout more time"
    return f"ask its administrator to {setting} (waitForPodsReady)"


#: What the lead says of a group that jobs wait for (pod/queue/pending.py)
NONE_UP = "the group {} has no node up"
#: How the lead begins to say that a node stays out (pod/queue/state.py)
CHECK_FAILED = "its check failed: "
#: How a node begins to say that it takes no jobs until memory is free that is no job's (pod/queue/state.py)
MEMORY_SHORT = "its memory is short: "
#: Seconds after which a broker should have joined
LATE_SECONDS = 60


def why_missing(pod: Pod | None, why_no_pod: str, drained: str | None = None) -> str:
    """Return why a node is missing: its pod, or why it has none. ``drained`` is the reason of its rank's drain."""
    if pod is None:
        return explained("no pod", "", why_no_pod)
    if pod.is_cut_off:
        return f"{pod.state}: its Kubernetes node {pod.node} gives no sign of life"
    if pod.state != "Running":
        return pod.why
    # the drain may be that of an earlier pod: then this one joins, or fails, in a moment
    return drained if drained and drained.startswith(CHECK_FAILED) else f"{pod.state}: its node is not in Flux"


def held_up(groups: Iterable[GroupNodes], missing: Mapping[int, str], snapshot: StatusSnapshot) -> str:
    """Return why the quorum does not come, "" while it may still come by itself."""
    pods = {each.first + index: pod for each in groups for index, pod in each.pods.items()}
    ways = {rank: pod.way_out for rank, pod in pods.items()}
    lacking = {each.first + index: each.why_no_pod for each in groups for index in range(each.size)}
    ways |= {rank: way_out("", why) for rank, why in lacking.items() if rank not in pods}
    stuck = [rank for rank in missing if ways[rank]]
    if stuck:
        # what Kubernetes says of each may change to and fro
        same = _alike(stuck, ways)
        one, several = ("is", "are") if stuck[0] in pods else ("has", "have")
        return f": {to_idset(same)} {several if len(same) > 1 else one} {missing[same[0]]}"
    unfit = [rank for rank, why in missing.items() if why.startswith(CHECK_FAILED)]
    if unfit:
        same = _alike(unfit, missing)
        return f": {to_idset(same)} {'stay' if len(same) > 1 else 'stays'} out: {missing[same[0]]}"
    late = [rank for rank in missing if rank > 0 and rank in pods and _is_late(pods[rank], snapshot)]
    if not late:
        return ""
    which = f"`minicluster logs {snapshot.name} --node {late[0]}`"
    return (
        f": {to_idset(late)} {'run' if len(late) > 1 else 'runs'} and can't join: {which} says why, or a NetworkPolicy "
        "closes the brokers' port, by default 8050"
    )


def _alike(ranks: list[int], why: Mapping[int, str]) -> list[int]:
    """Return the first rank, and the others of which the same is said."""
    return [rank for rank in ranks if why[rank] == why[ranks[0]]]


def _is_late(pod: Pod, snapshot: StatusSnapshot) -> bool:
    """Return whether a pod runs, and its broker had enough time to join this lead."""
    # an image may have taken minutes
    begun = max(each.started or each.created for each in (pod, snapshot.pods.get(0, pod)))
    return pod.state == "Running" and (snapshot.now - begun).total_seconds() > LATE_SECONDS


def of_no_nodes(
    reason: str, name: str, groups: Iterable[GroupNodes], limits: Mapping[str, dict[str, int] | None]
) -> str:
    """Return why jobs wait, with the way out where it is a group without nodes that nobody scales."""
    for group in groups:
        said = NONE_UP.format(group.name)
        if not group.size and not limits.get(group.name) and said in reason:
            empty = f"the group {group.name} has no nodes: `minicluster scale {name} {group.name}=SIZE` adds some"
            return reason.replace(said, empty)
    return reason


def too_many(name: str, groups: Iterable[GroupNodes]) -> Iterator[str]:
    """Yield a problem for each group with more pods than hosts that Flux knows."""
    for group in groups:
        if group.size > group.max_size > 0:
            what = f"the size of {group.name}" if group.name else "the size"
            way = f"{group.name}={group.max_size}" if group.name else str(group.max_size)
            yield (
                f"{what} is {group.size}, and maxSize {group.max_size}: pods beyond maxSize can't join: "
                f"`minicluster scale {name} {way}` removes them"
            )
