"""What Kubernetes' events say of pods that don't come, or don't start: neither the Job nor the pod has it."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from minicluster.cluster.troubles import way_out

#: Events whose object waits in silence: pods that are refused, and volumes that can't be mounted
SILENT_REASONS = ("FailedCreate", "FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox")
#: Events that the agent records of a Job that it changes (pod/agent/sized.py)
AGENT_REASONS = ("Scaled", "Idle", "Woken")
#: Field selector of a namespace's events; the frequent ones of other reasons are left out
WARNINGS = "type=Warning,reason!=BackOff,reason!=Unhealthy,reason!=FailedScheduling"
#: The kubelet tries again after at most 122 s: what it said earlier than that is over
RECENT = timedelta(seconds=150)
#: The begin of a message that stands for many which differ a little
COMBINED = "(combined from similar events): "


def silent_troubles(events: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Return {(kind, name): message} of the objects that wait in silence, from a list of events.

    An object may have several troubles. Which one is told does not depend on which event was the last.
    """
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for event in events.get("items", ()):
        if event["reason"] in SILENT_REASONS:
            who = event.get("involvedObject", {})
            found.setdefault((who.get("kind", ""), who.get("name", "")), []).append(event)
    return {who: _told(its) for who, its in found.items()}


def _told(events: Iterable[Mapping[str, Any]]) -> str:
    """Return the message of one of an object's events: a recent one, with a known way out if there is one."""
    said = [(time_of(event), str(event.get("message", "")).removeprefix(COMBINED)) for event in events]
    last = max(time for time, _ in said)
    recent = [message for time, message in said if last - time <= RECENT]
    return min(recent, key=lambda message: (not way_out("", message), message))


def sizes_told(events: Mapping[str, Any], job: str) -> list[tuple[float, str]]:
    """Return when, in seconds since the epoch, and how the agent has changed the Jobs of a MiniCluster, by its Job."""
    its = (
        event
        for event in events.get("items", ())
        if event["reason"] in AGENT_REASONS and f"{event['involvedObject'].get('name', '')}-".startswith(f"{job}-")
    )
    return sorted((time_of(event).timestamp(), str(event.get("message", ""))) for event in its)


def time_of(event: Mapping[str, Any]) -> datetime:
    """Return when an event was last seen."""
    series = event.get("series") or {}
    text = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return datetime.fromisoformat(text) if text else datetime.min.replace(tzinfo=UTC)
