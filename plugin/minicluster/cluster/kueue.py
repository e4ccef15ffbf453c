"""What Kueue does with a MiniCluster, read from the Workloads that it makes of its Jobs, and why."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from minicluster.console.plurals import counted
from minicluster.render.constants import KUEUE_ELASTIC

#: Label of a Workload with the UID of its Job
JOB_UID = "kueue.x-k8s.io/job-uid"
WORKLOADS = "workloads.kueue.x-k8s.io"
#: Reason of a Workload whose Job Kueue could not start
FAILED_TO_START = "FailedToStart"
#: Reason of a Workload of which all pods were ready, and one is missing
RECOVERY = "WaitForRecovery"
#: A reason that says no more than that a Workload waits
NO_REASON = "Pending"


class Unready(NamedTuple):
    """An admitted Workload of which not all pods are ready. Kueue evicts it some time later (waitForPodsReady)."""

    reason: str  #: Kueue's: RECOVERY, or WaitForStart
    since: datetime
    is_elastic: bool


def why_held(workloads: Mapping[str, Any]) -> str:
    """Return why a Job is suspended or pods of it are gated, from the list of its Workloads as kubectl prints it."""
    active = _active(workloads)
    reasons = dict.fromkeys(reason for workload in active for reason in _reasons(workload))
    told = "; ".join(reasons) or ("" if active else _failed_start(workloads))
    return told or "it has not looked at the Job yet"


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
    return [one for one in workloads.get("items", ()) if "Finished" not in true_conditions(one)]


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
    conditions = [c for one in workloads.get("items", ()) for c in one.get("status", {}).get("conditions", [])]
    failed = [c for c in conditions if (c["type"], c["reason"]) == ("Finished", FAILED_TO_START)]
    if not failed:
        return ""
    last = max(failed, key=lambda condition: str(condition["lastTransitionTime"]))
    return f"it could not start the Job: {last['message']}"


def true_conditions(workload: Mapping[str, Any]) -> set[str]:
    """Return the types of a Workload's true conditions."""
    conditions = workload.get("status", {}).get("conditions", [])
    return {condition["type"] for condition in conditions if condition["status"] == "True"}
