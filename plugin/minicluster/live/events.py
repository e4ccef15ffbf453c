"""What Kubernetes' events say of a pod that does not come, or does not start: its own status doesn't have it."""

from collections.abc import Mapping
from typing import Any

from minicluster.cluster.find import Found
from minicluster.cluster.pods import STARTING
from minicluster.cluster.troubles import way_out
from minicluster.kubectl import CommandError, Kubernetes

#: Events whose object waits in silence: pods that are refused, and volumes that can't be mounted
REASONS = ("FailedCreate", "FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox")


def why_silent(kubernetes: Kubernetes, found: Found) -> str:
    """Return why the lead has no pod, or its pod does not start; "" where no event says it, or nobody may read them."""
    lead = found.pods.get(0)
    if lead and (lead.phase != "Pending" or lead.reason not in STARTING or lead.is_leaving):
        return ""
    return _of_events(kubernetes, *(("Pod", lead.name) if lead else ("Job", found.name)))


def why_refused(kubernetes: Kubernetes, found: Found) -> dict[str, str]:
    """Return why pods of the cluster, "", and of its groups are not made, for those that lack some."""
    reasons: dict[str, str] = {}
    size = found.job.size if found.job and not found.job.is_suspended else 0
    sizes = {"": (size, found.pods), **{each.name: (each.size, each.pods) for each in found.groups}}
    for group, (wanted, pods) in sizes.items():
        name = f"{found.name}-{group}" if group else found.name
        if any(index not in pods for index in range(wanted)) and (message := _of_events(kubernetes, "Job", name)):
            reasons[group] = message
    return reasons


def _of_events(kubernetes: Kubernetes, kind: str, name: str) -> str:
    """Return what the newest warning about an object says, with the way out; "" for none, or if nobody may read it."""
    which = f"--field-selector=involvedObject.kind={kind},involvedObject.name={name},type=Warning"
    try:
        message = newest(kubernetes.get("events", which))
    except CommandError:
        return ""
    return ": ".join(filter(None, [message, way_out("", message)]))


def newest(events: Mapping[str, Any]) -> str:
    """Return the message of the newest event that says why something does not start; "" for none."""
    found = [event for event in events.get("items", ()) if event["reason"] in REASONS]
    return str(max(found, key=_time)["message"]) if found else ""


def _time(event: Mapping[str, Any]) -> str:
    series = event.get("series") or {}
    return str(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or "")
