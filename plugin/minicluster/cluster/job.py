"""The Job of a MiniCluster, read from Kubernetes' objects: its size, who suspended it, and how it ended."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from minicluster.cluster import states
from minicluster.cluster.pods import CLUSTER_LABEL, SUSPENDED, Pod, queue_of, registered
from minicluster.errors import StateError
from minicluster.kube.names import CONFIG_SUFFIX
from minicluster.kube.port import KubePort
from minicluster.render.constants import GROUP_LABEL, IMMUTABLE, MULTIKUEUE

#: The first words of the annotation that says who suspended the Job, if the agent did (pod/agent/suspend.py)
IDLE = "idle for "
#: State of a Job by its condition; the first two are set while pods still leave (Kubernetes 1.31)
STATE_BY_CONDITION = {
    "SuccessCriteriaMet": "Complete",
    "FailureTarget": "Failed",
    "Complete": "Complete",
    "Failed": "Failed",
}

#: State of a Job that is deleted, and why
ENDING = ("Ending", "the Job was deleted: its pods end within their grace period")


@dataclass(frozen=True)
class KubernetesJob:
    """The Job of a MiniCluster."""

    namespace: str
    created: datetime
    size: int
    max_size: int | None  #: None when it is no longer known
    lead_address: str = ""  #: of the cluster that this one's brokers join; "" when they join their own lead
    has_socket: bool = True  #: whether Flux can be asked
    is_suspended: bool = False
    why_suspended: str = ""  #: "" when nothing says it
    queue: str = ""  #: Kueue's, "" without
    uid: str = ""
    end: tuple[str, str] | None = None  #: how it ended (Complete, Failed, Gone) or ends (Ending), and why
    failed_pod: str = ""  #: name of the pod by whose exit code it failed
    groups: Mapping[str, int] = field(default_factory=dict)  #: maxSize of each group, by name
    why_no_pod: str = ""  #: what an event says of a pod that it could not make
    failures: int = 0  #: pods that failed and count
    most_failures: int | None = None  #: with more the Job ends; None when it is not known
    is_copied: bool = False  #: whether Kueue's MultiKueue runs a copy in another cluster
    cluster: str = ""  #: the MiniCluster that its pods name, the one that was rendered; "" when it is no longer known

    @property
    def is_asleep(self) -> bool:
        """Whether its agent suspended it, because it was idle."""
        return self.is_suspended and self.why_suspended.startswith(IDLE)


def recorded(job: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a Job that can't change, by their paths; none for one that is gone."""
    return dict(json.loads(job.get("metadata", {}).get("annotations", {}).get(IMMUTABLE, "{}")))


def read_job(job: Mapping[str, Any]) -> KubernetesJob | None:
    """Return a Job as kubectl prints it; None when it isn't a MiniCluster's, or is that of a group."""
    metadata, spec = job["metadata"], job["spec"]
    if IMMUTABLE not in metadata.get("annotations", {}) or GROUP_LABEL in metadata.get("labels", {}):
        return None
    immutable, conditions = recorded(job), job.get("status", {}).get("conditions", [])
    return KubernetesJob(
        namespace=metadata["namespace"],
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        size=int(spec["completions"]),
        max_size=int(immutable["maxSize"]),
        lead_address=immutable.get("flux.bursting.leadBroker.address") or immutable.get("flux.leadBroker.address", ""),
        has_socket=immutable.get("flux.disableSocket") != "true",
        is_suspended=spec.get("suspend", False),
        why_suspended=metadata["annotations"].get(SUSPENDED, ""),
        queue=queue_of(job),
        uid=metadata.get("uid", ""),
        end=_end(conditions) or (ENDING if "deletionTimestamp" in metadata else None),
        failed_pod=_failed_pod(conditions),
        groups=registered(immutable),
        failures=job.get("status", {}).get("failed", 0),
        most_failures=spec.get("backoffLimit"),
        is_copied=spec.get("managedBy") == MULTIKUEUE,
        # its own labels may be those of Argo CD
        cluster=spec.get("template", {}).get("metadata", {}).get("labels", {}).get(CLUSTER_LABEL, metadata["name"]),
    )


def _end(conditions: Iterable[Mapping[str, str]]) -> tuple[str, str] | None:
    for condition in conditions:
        if condition["type"] in STATE_BY_CONDITION and condition["status"] == "True":
            reason, message = condition.get("reason", ""), condition.get("message", "")
            return STATE_BY_CONDITION[condition["type"]], states.of_end(reason, message)
    return None


def _failed_pod(conditions: Iterable[Mapping[str, str]]) -> str:
    """Return the pod that failed the Job; "" when none did, or nobody knows which."""
    matches = (states.FAILED_CONTAINER.fullmatch(condition.get("message", "")) for condition in conditions)
    return next((match[2] for match in matches if match), "")


def read_deleted_job(config: Mapping[str, Any]) -> KubernetesJob | None:
    """Return the deleted Job that a MiniCluster's ConfigMap belonged to; None when it isn't a MiniCluster's."""
    metadata, text = config["metadata"], config.get("data", {}).get("agent.json")
    if text is None or metadata.get("labels", {}).get("app.kubernetes.io/name") != "minicluster":
        return None
    settings = json.loads(text)
    created = datetime.fromisoformat(metadata["creationTimestamp"])
    name = metadata["name"].removesuffix(CONFIG_SUFFIX)
    release = release_of({"metadata": {**metadata, "name": name}})
    end = (
        "Gone",
        f"its Job ended and was cleaned up, or was deleted; {_way_back(config)}`helm uninstall {release}` removes the "
        "rest",
    )
    return KubernetesJob(metadata["namespace"], created, int(settings["size"]), int(settings["max_size"]), end=end)


def _way_back(config: Mapping[str, Any]) -> str:
    """Return how the Job comes back, which an upgrade may have removed; "" where its queue is not kept."""
    name, settings = config["metadata"]["name"].removesuffix(CONFIG_SUFFIX), config["data"].get("settings.sh", "")
    is_kept = re.search(r"^mc_(state_volume|archive)=(?!''$)", settings, re.MULTILINE)
    return f"`minicluster replace {name}` makes it anew and keeps the queue; " if is_kept else ""


def job_of_pods(pods: Mapping[int, Pod]) -> KubernetesJob | None:
    """Return the deleted Job whose pods end; None if a pod runs on."""
    if not all(pod.is_leaving or pod.has_ended for pod in pods.values()):
        return None
    some = next(iter(pods.values()))
    return KubernetesJob(some.namespace, min(pod.created for pod in pods.values()), len(pods), None, end=ENDING)


def policy_of(config: Mapping[str, Any], group: str) -> dict[str, Any] | None:
    """Return the autoscaler's policy of a group, "" for the cluster's own, from its ConfigMap; None while it is off."""
    settings = json.loads(config.get("data", {}).get("agent.json", "{}"))
    groups = {each["name"]: each for each in settings.get("groups", ())}
    policy: dict[str, Any] | None = (groups.get(group, {}) if group else settings).get("policy")
    return policy


def read_names(objects: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name of each MiniCluster in a list of objects, and its release, as often as it has objects there."""
    for item in objects["items"]:
        metadata = item["metadata"]
        name = metadata.get("labels", {}).get("app.kubernetes.io/instance")
        # the ConfigMap with the programs is of no single MiniCluster
        if name:
            yield str(name), str(metadata.get("annotations", {}).get("meta.helm.sh/release-name", name))


def release_of(job: Mapping[str, Any]) -> str:
    """Return the release that a Job belongs to."""
    metadata = job["metadata"]
    return str(metadata.get("annotations", {}).get("meta.helm.sh/release-name", metadata["name"]))


def end_of(name: str, job: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return how a MiniCluster or a group ended, ``Complete``, ``Failed`` or ``Gone``, and why; None while it lives."""
    if not job:
        return "Gone", f"the Job {name} was deleted, or cleaned up after its end"
    if "deletionTimestamp" in job["metadata"]:
        return "Gone", f"the Job {name} is being deleted"
    return _end(job.get("status", {}).get("conditions", []))


#: The agent's name in managedFields. The agent gives up all entries of this name, so it also cleans up after us
MANAGER = "minicluster-agent"
#: Attempts: the Job's controller may change the Job at the same time
CHANGE_TRIES = 5


def is_asleep(job: Mapping[str, Any]) -> bool:
    """Say whether a Job was suspended because it was idle, and nobody has resumed it."""
    its_job = read_job(job) if job else None
    return bool(its_job and its_job.is_asleep)


def was_woken(job: Mapping[str, Any]) -> bool:
    """Say whether a Job was suspended, and somebody other than Kueue has resumed it."""
    its_job = read_job(job) if job else None
    conditions = job.get("status", {}).get("conditions", [])
    is_resumed = ("Suspended", "False") in [(each["type"], each["status"]) for each in conditions]
    return bool(its_job and not its_job.queue and is_resumed)


def wake(kube: KubePort, name: str) -> None:
    """Resume a Job that sleeps; leave others as they are. Afterwards no client owns `suspend`, so Helm may set it.

    Raises StateError when others change it again and again, KubernetesError.
    """
    for _ in range(CHANGE_TRIES):
        job = kube.get("job", name)
        if not is_asleep(job):
            return
        change = {"resourceVersion": job["metadata"]["resourceVersion"], "annotations": {SUSPENDED: None}}
        if after := kube.patch("job", name, {"metadata": change, "spec": {"suspend": False}}, MANAGER):
            break
    else:
        raise StateError("the Job was changed again and again while it was resumed: try again")
    for _ in range(CHANGE_TRIES):
        metadata = after.get("metadata", {})
        others = [entry for entry in metadata.get("managedFields", []) if entry["manager"] != MANAGER]
        if len(others) == len(metadata.get("managedFields", [])):
            return
        change = {"resourceVersion": metadata["resourceVersion"], "managedFields": others}
        # an empty patch changes nothing, and returns the managedFields, which `get` leaves out
        after = kube.patch("job", name, {"metadata": change}, MANAGER) or kube.patch("job", name, {}, MANAGER) or {}
