"""What keeps a pod from running, as Kubernetes' events and conditions say it, and the way out."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from minicluster.kube.names import CONFIG_SUFFIX, CURVE_SUFFIX

NO_VIEW = "the view's image is not a Flux view: set flux.container.image to one"
#: What Kubernetes says of an object that a pod needs, and the namespace lacks
LACKING = re.compile(r"(?:secret|configmap)s? \"([^\"]*)\" not found")
#: The way out where it is one that the chart makes (minicluster.yaml; render/curve.py)
OWN_WAY = (
    "it is the release's own: restore it, or install the release again; a Job that was copied from another cluster, as "
    "MultiKueue does, can't run here"
)
#: Patterns of ``Reason: message``, as Kubernetes says them, and the way out; the first that is found counts
WAYS: tuple[tuple[str, str], ...] = (
    (
        r"^(ErrImage|ImagePull|CreateContainer|StartError|RunContainer).*(no match for platform|exec format)",
        "the image is not for this Kubernetes node's architecture: use one that is, or set pod.nodeSelector",
    ),
    (
        r"^(ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull|ImageInspectError)",
        "correct the image's name, or set pod.imagePullSecrets for its registry",
    ),
    (r"^CreateContainerError.*opt/(software|views)", NO_VIEW),
    (r"^flux-view, exit code 66", NO_VIEW),
    (
        r"(secret|configmap)s? \"[^\"]*\" not found|couldn't find key|references non-existent",
        "create it in this namespace, or correct the value that names it: the pod then starts by itself",
    ),
    (r"^Unschedulable.*claim \"[^\"]*\" not found", "create the claim, or correct the value that names it"),
    (
        r"^Unschedulable.*unbound immediate PersistentVolumeClaims",
        "`kubectl describe pvc` says why: set storageClass or accessModes",
    ),
    (
        r"^Unschedulable.*Insufficient ",
        "lower resources.requests or size; it starts when a Kubernetes node has room",
    ),
    (
        r"^Unschedulable.*node\.kubernetes\.io/(unreachable|not-ready|disk-pressure|memory-pressure|unschedulable)",
        "Kubernetes nodes are lost, full or closed: `kubectl get nodes` says which; it starts when one has room",
    ),
    (r"^Unschedulable.*node affinity/selector", "correct pod.nodeSelector or pod.nodeAffinity"),
    (r"^Unschedulable.*untolerated taint", "set pod.tolerations"),
    (
        r"^ended with exit code \d+, kept by ",
        "Kubernetes waits for that container, which must end too: leave it out by pod.labels or pod.annotations, or "
        "add it as an init container with restartPolicy Always",
    ),
    (r"^OOMKilled", "it needs more memory: raise resources.limits.memory"),
    (r"^Evicted.*EmptyDir volume", "write less there, or give the volume a larger limit"),
    (
        r"^Evicted.*exceed.*ephemeral|^Evicted.*ephemeral.*exceed",
        "write to a volume, or raise resources.limits.ephemeral-storage",
    ),
    (
        r"^Evicted.*(ephemeral-storage|inodes|DiskPressure)",
        "the disk of its Kubernetes node is full: write to a volume, or set resources.requests.ephemeral-storage",
    ),
    (
        r"^Evicted.*(memory|MemoryPressure)",
        "set resources.requests.memory to what it needs: others are then evicted first",
    ),
    (r"exceeded quota", "lower resources or size, or ask for a larger quota"),
    (r"must specify ", "set containers[].resources: the quota of the namespace asks for them"),
    (
        r"(minimum|maximum) \S+ usage per |limit to request ratio per ",
        "set containers[].resources within the LimitRange of the namespace",
    ),
    (r"violates PodSecurity", "start from values-examples/restricted.yaml"),
)

#: What the scheduler adds to its reason; the reason is all that helps
BESIDE = re.compile(r"(?<=[a-z\d})\]])\.? (no new claims to deallocate, )?preemption: .*", re.DOTALL)


def way_out(reason: str, message: str, cluster: str = "") -> str:
    """Return the way out of a pod's state; "" where it needs none, or none is known. ``cluster`` is its MiniCluster."""
    said = " ".join(f"{reason}: {message}".split())
    lacking = LACKING.search(said)
    if lacking and lacking[1] in (cluster + CONFIG_SUFFIX, cluster + CURVE_SUFFIX):
        return OWN_WAY
    return next((way for pattern, way in WAYS if re.search(pattern, said)), "")


def explained(state: str, reason: str, message: str, cluster: str = "") -> str:
    """Return a pod's state with Kubernetes' message and the way out, such as ``Pending: REASON: MESSAGE: WAY``."""
    said = BESIDE.sub("", message).strip().rstrip(".")
    return ": ".join(filter(None, [state, said, way_out(reason, message, cluster)]))


#: Events whose object waits in silence: pods that are refused, and volumes that can't be mounted
SILENT_REASONS = ("FailedCreate", "FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox")
#: Events that the agent records of a Job that it changes (pod/agent/scaled_job.py)
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
    by_object: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for event in events.get("items", ()):
        if event["reason"] in SILENT_REASONS:
            who = event.get("involvedObject", {})
            by_object.setdefault((who.get("kind", ""), who.get("name", "")), []).append(event)
    return {who: _told(its) for who, its in by_object.items()}


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
