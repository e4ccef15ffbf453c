"""Why Kueue holds a MiniCluster or some of its pods back, read from the Workloads that Kueue makes of its Job."""

from collections.abc import Iterator, Mapping
from typing import Any

#: Label of a Workload with the UID of its Job
JOB_UID = "kueue.x-k8s.io/job-uid"
WORKLOADS = "workloads.kueue.x-k8s.io"
#: Reason of a Workload whose Job Kueue could not start
FAILED_TO_START = "FailedToStart"


def why_held(workloads: Mapping[str, Any]) -> str:
    """Return why a Job is suspended or pods of it are gated, from the list of its Workloads as kubectl prints it."""
    active = [one for one in workloads.get("items", ()) if "Finished" not in true_conditions(one)]
    reasons = dict.fromkeys(reason for workload in active for reason in _reasons(workload))
    told = "; ".join(reasons) or ("" if active else _failed_start(workloads))
    return told or "it has not looked at the Job yet"


def _reasons(workload: Mapping[str, Any]) -> Iterator[str]:
    """Yield what holds a Workload back: the eviction, then what it waits for."""
    if not workload["spec"].get("active", True):
        name = workload["metadata"]["name"]
        patch = '{"spec":{"active":true}}'
        yield f"deactivated: `kubectl patch workload {name} --type=merge -p '{patch}'` resumes it"
        return
    conditions = {condition["type"]: condition for condition in workload.get("status", {}).get("conditions", [])}
    for kind, status in (("Evicted", "True"), ("QuotaReserved", "False")):
        condition = conditions.get(kind, {})
        if condition.get("status") == status:
            yield condition.get("message") or condition.get("reason", "")


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
