"""Why a MiniCluster, or one of its nodes, is not there: what Kubernetes' objects, and Kueue's, say only together.

`status` and all waits read it here. The words are those of `state_without_flux`, and of the pods.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from minicluster.cluster import states
from minicluster.cluster.find import LiveCluster
from minicluster.cluster.job import KubernetesJob
from minicluster.cluster.pods import GroupNodes, Pod
from minicluster.cluster.troubles import WARNINGS, silent_troubles
from minicluster.console import lines
from minicluster.console.messages import counted
from minicluster.errors import KubernetesError
from minicluster.kube.port import KubePort
from minicluster.render.constants import KUEUE_ELASTIC

#: Lines at the end of a log that say why a pod failed; seconds that they have to come
LOG_LINES, SECONDS = 50, 20.0


#: Label of a Workload with the UID of its Job
JOB_UID = "kueue.x-k8s.io/job-uid"
WORKLOADS = "workloads.kueue.x-k8s.io"
#: Reason of a Workload whose Job Kueue could not start
FAILED_TO_START = "FailedToStart"
#: Reason of a Workload of which all pods were ready, and one is missing
RECOVERY = "WaitForRecovery"
#: A reason that says no more than that a Workload waits
NO_REASON = "Pending"


def with_reasons(kube: KubePort, cluster: LiveCluster) -> LiveCluster:
    """Return the same objects, with what Kueue and events say of Jobs and pods that wait; it asks only if some do."""
    return _with_reasons_of_events(kube, _with_reasons_of_kueue(kube, cluster))


def pod_with_reason(kube: KubePort, pod: Pod) -> Pod:
    """Return a pod, with what events say of it if it waits in silence."""
    return _told(pod, _troubles(kube)) if pod.is_silent else pod


def why_no_pod(kube: KubePort, job: str) -> str:
    """Return what events say of a Job that has a pod too few, "" for nothing."""
    return _troubles(kube).get(("Job", job), "")


def why_failed(kube: KubePort, job: KubernetesJob, lead: Pod | None) -> tuple[str, str] | None:
    """Return how a Job ended, or ends, and why; None for one that lives.

    If it failed, the reason is from its pod's log, if the user may read that.
    """
    # Kubernetes sees the end of a container before that of its pod
    has_failed = lead and (lead.phase == "Failed" or (lead.exit_code and not lead.is_replaced))
    pod = job.failed_pod or (lead.name if lead and has_failed else "")
    ends = bool(lead and pod and not (job.end or lead.is_replaced or lead.is_leaving or lead.kept_by))
    if not ends and not (job.end and job.end[0] == "Failed" and pod):
        return job.end
    try:
        log = b"".join(kube.within(SECONDS).log(pod, tail=LOG_LINES)).decode(errors="replace")
    except KubernetesError:
        log = ""
    why = states.of_log(lines.split(log))
    if not job.end:
        return ("Ending", f"{why}: Kubernetes ends the Job") if why else None
    why = why or job.end[1]
    if lead and lead.name == pod and lead.reason.startswith("OOMKilled") and states.MEMORY not in why:
        why = f"{why} ({states.MEMORY})"
    return "Failed", why


# Events -------------------------------------------------------------------------------------------------------


def _with_reasons_of_events(kube: KubePort, cluster: LiveCluster) -> LiveCluster:
    lead, job = cluster.pods.get(0), cluster.job
    own = GroupNodes("", job.size if job and not (job.is_suspended or job.end) else 0, 0, 0, cluster.pods)
    groups = [own, *cluster.groups]
    # while there is no lead, what keeps it away keeps the others away
    is_lacking = (lead is None and own.size) or (lead and lead.phase == "Running" and any(map(_lacks, groups)))
    if not (is_lacking or any(pod.is_silent for group in groups for pod in group.pods.values())):
        return cluster
    troubles = _troubles(kube)
    told = [
        replace(
            group,
            pods={index: _told(pod, troubles) for index, pod in group.pods.items()},
            why_no_pod=troubles.get(("Job", f"{cluster.name}-{group.name}" if group.name else cluster.name), ""),
        )
        for group in groups
    ]
    job = job and replace(job, why_no_pod=told[0].why_no_pod)
    return LiveCluster(cluster.name, dict(told[0].pods), job, told[1:])


def _lacks(group: GroupNodes) -> bool:
    """Return whether a group's Job should have made a pod, and has not."""
    return not (group.is_suspended or group.why_held) and any(index not in group.pods for index in range(group.size))


def _told(pod: Pod, troubles: Mapping[tuple[str, str], str]) -> Pod:
    said = troubles.get(("Pod", pod.name), "") if pod.is_silent else ""
    return replace(pod, message=said) if said else pod


def _troubles(kube: KubePort) -> dict[tuple[str, str], str]:
    """Return what events say; nothing to a user who may not read them."""
    try:
        return silent_troubles(kube.select("events", fields=WARNINGS))
    except KubernetesError:
        return {}


# Kueue --------------------------------------------------------------------------------------------------------


def _with_reasons_of_kueue(kube: KubePort, cluster: LiveCluster) -> LiveCluster:
    """Return the same, with Kueue's reasons for the Jobs that are suspended and the pods that are gated."""
    job, pods, groups = cluster.job, cluster.pods, []
    if job:
        why, pods = _held(kube, job, pods)
        job = replace(job, why_suspended=why or job.why_suspended)
    for group in cluster.groups:
        why, its = _held(kube, group, group.pods)
        groups.append(replace(group, why_held=why, pods=its))
    return LiveCluster(cluster.name, pods, job, groups)


def _held(kube: KubePort, job: KubernetesJob | GroupNodes, pods: Mapping[int, Pod]) -> tuple[str, dict[int, Pod]]:
    """Return why Kueue holds a Job back, "" if it does not, and its pods: a gated one has the reason as its message."""
    is_held = bool(job.is_suspended and job.queue)
    if not (job.uid and (is_held or any(pod.is_gated for pod in pods.values()))):
        return "", dict(pods)
    why = _ask_kueue(kube, job.uid)
    told = {index: replace(pod, message=why) if pod.is_gated else pod for index, pod in pods.items()}
    return f"Kueue's queue {job.queue}: {why}" if is_held else "", told


def _ask_kueue(kube: KubePort, uid: str) -> str:
    try:
        return why_held(kube.select(WORKLOADS, f"{JOB_UID}={uid}"))
    except KubernetesError as error:
        return f"its reason can't be read: {error.reason}"


class Unready(NamedTuple):
    """An admitted Workload of which not all pods are ready. Kueue evicts it some time later (waitForPodsReady)."""

    reason: str  #: Kueue's: RECOVERY, or WaitForStart
    since: datetime
    is_elastic: bool


def why_held(workloads: Mapping[str, Any]) -> str:
    """Return why a Job is suspended or pods of it are gated, from the list of its Workloads as kubectl prints it."""
    active = _active(workloads)
    reasons = dict.fromkeys(reason for workload in active for reason in _reasons(workload))
    return "; ".join(reasons) or ("" if active else _failed_start(workloads)) or "it has not looked at the Job yet"


def unready(workloads: Mapping[str, Any]) -> Unready | None:
    """Return since when not all pods are ready, as Kueue counts it; None if all are, or Kueue doesn't mind."""
    for workload in _active(workloads):
        conditions = _conditions(workload)
        if {"Admitted", "PodsReady"} <= conditions.keys() and not _is_true(conditions, "PodsReady"):
            reason = conditions["PodsReady"]["reason"]
            start = conditions["PodsReady" if reason == RECOVERY else "Admitted"]
            if _is_true(conditions, "Admitted") and not _is_true(conditions, "Evicted"):
                elastic = workload["metadata"].get("annotations", {}).get(KUEUE_ELASTIC) == "true"
                return Unready(reason, datetime.fromisoformat(start["lastTransitionTime"]), elastic)
    return None


def evicted_before(workloads: Mapping[str, Any]) -> tuple[str, datetime] | None:
    """Return why Kueue evicted a Workload that it has admitted again, and when it did that; None if it did not."""
    for workload in _active(workloads):
        conditions = _conditions(workload)
        if "Evicted" in conditions and not _is_true(conditions, "Evicted") and _is_true(conditions, "Admitted"):
            times = [f"{_codes(each)}, {counted(each['count'], 'time')}" for each in _evictions(workload)]
            why = "; ".join(times) or conditions["Evicted"].get("message", "")
            return why, datetime.fromisoformat(conditions["Admitted"]["lastTransitionTime"])
    return None


def _active(workloads: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in workloads.get("items", ()) if not _is_true(_conditions(one), "Finished")]


def _reasons(workload: Mapping[str, Any]) -> Iterator[str]:
    """Yield what holds a Workload back: the eviction, then what it waits for."""
    conditions = _conditions(workload)
    evicted, waits = conditions.get("Evicted", {}), conditions.get("QuotaReserved", {})
    is_evicted = _is_true(conditions, "Evicted")
    if not workload["spec"].get("active", True):
        name = workload["metadata"]["name"]
        patch = '{"spec":{"active":true}}'
        code = f" ({evicted['reason']})" if is_evicted else ""
        yield f"deactivated{code}: `kubectl patch workload {name} --type=merge -p '{patch}'` resumes it"
        return
    if is_evicted:
        causes = [each for each in _evictions(workload) if each["reason"] == evicted["reason"]]
        yield _said(evicted, _codes(causes[0]) if len(causes) == 1 else evicted["reason"]) + _queued_again(workload)
    if waits.get("status") == "False" and not (is_evicted and waits.get("message") == evicted.get("message")):
        yield _said(waits, waits["reason"])


def _said(condition: Mapping[str, Any], code: str) -> str:
    """Return the message of a condition and Kueue's reason code."""
    message = str(condition.get("message", ""))
    return f"{message} ({code})" if message and code != NO_REASON else message or code


def _evictions(workload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    evictions: list[Mapping[str, Any]] = workload.get("status", {}).get("schedulingStats", {}).get("evictions", [])
    return evictions


def _codes(eviction: Mapping[str, Any]) -> str:
    """Return Kueue's reason codes of an eviction, such as ``PodsReadyTimeout, WaitForRecovery``."""
    return ", ".join(filter(None, [eviction["reason"], eviction.get("underlyingCause", "")]))


def _queued_again(workload: Mapping[str, Any]) -> str:
    """Return until when Kueue leaves an evicted Workload out of its queue; "" when it does not."""
    time = workload.get("status", {}).get("requeueState", {}).get("requeueAt")
    return f", in its queue again at {datetime.fromisoformat(time):%H:%M:%S} UTC" if time else ""


def _conditions(workload: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {condition["type"]: condition for condition in workload.get("status", {}).get("conditions", [])}


def _is_true(conditions: Mapping[str, Mapping[str, Any]], kind: str) -> bool:
    return conditions.get(kind, {}).get("status") == "True"


def _failed_start(workloads: Mapping[str, Any]) -> str:
    """Return why Kueue could not start the Job, and gave up; "" when it did not try."""
    ends = [_conditions(one).get("Finished", {}) for one in workloads.get("items", ())]
    failed = [end for end in ends if end.get("reason") == FAILED_TO_START]
    if not failed:
        return ""
    last = max(failed, key=lambda condition: str(condition["lastTransitionTime"]))
    return f"it could not start the Job: {last['message']}"
