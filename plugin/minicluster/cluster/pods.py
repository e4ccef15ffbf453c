"""Pods of an Indexed Job, read from ``kubectl get pods -o json``: the state of each, and the reason for it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from minicluster.cluster import pod_status
from minicluster.cluster.troubles import explained, way_out
from minicluster.kube.names import INDEX
from minicluster.render.constants import GROUP_LABEL, KUEUE_ELASTIC

#: Label with the name of the MiniCluster
CLUSTER_LABEL = "app.kubernetes.io/instance"
#: Label with a pod's zone, from Kubernetes 1.35 on
ZONE = "topology.kubernetes.io/zone"
#: Annotation by which kubectl, and we, find the container that runs Flux
RUNNER = "kubectl.kubernetes.io/default-container"
#: Annotations with the number of pods of an index that failed before; those of the second don't count for backoffLimit
FAILURES, IGNORED_FAILURES = (
    "batch.kubernetes.io/job-index-failure-count",
    "batch.kubernetes.io/job-index-ignored-failure-count",
)
#: Begins a text of ours for a pod's /bin/sh: the PATH of an image may name its application alone (pod/view/world.sh)
FIND_TOOLS = "PATH=${PATH:+$PATH:}/usr/bin:/bin; "
#: Exit codes of pods that were told to stop, killed, or lost when their Kubernetes node restarted: the Job's
#: podFailurePolicy replaces them
REPLACED_CODES = (pod_status.STOP_CODE, 137, 255)
#: Reasons for which a container doesn't start, and most often never will
STUCK_REASONS = (
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "CrashLoopBackOff",
)


@dataclass(frozen=True)
class Pod:
    """A pod and its state."""

    index: int
    name: str
    namespace: str
    created: datetime
    phase: str
    reason: str  #: one word or so, e.g. ``ImagePullBackOff``; "" when the phase says it all
    message: str
    is_leaving: bool  #: deleted, and not gone yet
    is_ready: bool
    runner: str  #: name of the container that runs Flux
    failing: Mapping[str, str]  #: name of each other container that fails, and how
    failures: int = 0  #: failed pods of this index, with this one; 0 if Kubernetes doesn't count them
    ended: datetime | None = None  #: when its runner ended
    exit_code: int | None = None  #: of its runner, once that has ended
    node: str = ""  #: the Kubernetes node; "" while it has none
    zone: str = ""  #: "" if Kubernetes doesn't tell it
    is_replaced: bool = True  #: whether the Job replaces it if it has failed; else it ends the Job
    is_cut_off: bool = False  #: whether its Kubernetes node gives no sign of life
    is_gated: bool = False  #: whether Kueue keeps it from being scheduled
    is_set_up: bool = False  #: whether it has its volumes and its network
    cluster: str = ""  #: name of its MiniCluster; "" if it doesn't say
    kept_by: str = ""  #: names of other containers that run on although the runner has ended
    started: datetime | None = None  #: when its runner began to run; None while it doesn't
    came_back: datetime | None = None  #: the same, if it was killed before
    former: str = ""  #: the failed pod of its index before it, and how that ended; "" where none is known

    @property
    def state(self) -> str:
        """Phase and reason, e.g. ``Pending: ImagePullBackOff``."""
        return f"{self.phase}: {self.reason}" if self.reason else self.phase

    @property
    def why(self) -> str:
        """The same with Kubernetes' message and the way out."""
        return explained(self.state, self.reason, self.message, self.cluster)

    @property
    def loss(self) -> str:
        """Its name, and when and why it failed."""
        return f"{self.name}{f', {self.ended:%Y-%m-%d %H:%M:%S} UTC' if self.ended else ''}: {self.why}"

    @property
    def way_out(self) -> str:
        """What a user can do about it; "" where nothing is wrong, or nothing is known."""
        return way_out(self.reason, self.message, self.cluster)

    def exec_words(self, *options: str) -> tuple[str, ...]:
        """Return the words by which kubectl runs a command in the container that runs Flux; the command follows."""
        return ("exec", self.name, f"--container={self.runner}", *options, "--")

    def back_off(self, now: datetime) -> float:
        """Return the seconds until Kubernetes makes the next pod in place of one that failed; 0 if unknown.

        The wait is that of the Job's controller (backoff_utils.go): it doubles, from 10 s to 10 minutes.
        """
        if not self.failures or self.ended is None:
            return 0
        whole = min(600, 10 << min(self.failures - 1, 6))
        # our clock may be another one than the cluster's
        return min(whole, max(0.0, whole - (now - self.ended).total_seconds()))

    @property
    def is_stuck(self) -> bool:
        """Whether it doesn't start, for instance because an image can't be pulled, or a volume can't be mounted."""
        return self.phase == "Pending" and (self.reason in STUCK_REASONS or bool(self.is_silent and self.way_out))

    @property
    def is_silent(self) -> bool:
        """Whether it waits, and only events may say for what."""
        return (
            self.phase == "Pending" and self.reason in pod_status.STARTING and not (self.is_leaving or self.is_set_up)
        )

    @property
    def has_ended(self) -> bool:
        """Whether all containers have ended for good."""
        return self.phase in ("Succeeded", "Failed")


def labels_of_pods(job: str, index: int) -> str:
    """Return the label selector of the pods of an index of a Job."""
    return f"batch.kubernetes.io/job-name={job},{INDEX}={index}"


def read_pods(pods: Mapping[str, Any], group: str = "") -> dict[int, Pod]:
    """Return the newest pod of each index in a list from kubectl: a pod that ended may have been replaced.

    Only those of one group count, by default the cluster's own. Where nothing is found, kubectl prints no list.
    """
    labels = ((item, item["metadata"].get("labels", {})) for item in pods.get("items", ()))
    read = [read_pod(item) for item, its in labels if INDEX in its and its.get(GROUP_LABEL, "") == group]
    newest: dict[int, Pod] = {}
    for pod in sorted(read, key=lambda pod: (pod.index, pod.created, not pod.is_leaving)):
        before = newest.get(pod.index)
        newest[pod.index] = replace(pod, former=before.loss) if before and before.phase == "Failed" else pod
    return newest


def read_all_pods(pods: Mapping[str, Any]) -> dict[str, dict[int, Pod]]:
    """Return the same of each group by its name, "" for the cluster's own pods."""
    groups = sorted({item["metadata"].get("labels", {}).get(GROUP_LABEL, "") for item in pods["items"]})
    return {group: read_pods(pods, group) for group in groups}


def read_pod(item: Mapping[str, Any]) -> Pod:
    """Return a pod of an Indexed Job."""
    metadata, status = item["metadata"], item.get("status", {})
    runner = metadata.get("annotations", {}).get(RUNNER, "")
    is_leaving = "deletionTimestamp" in metadata
    gates = {gate["name"] for gate in item.get("spec", {}).get("schedulingGates", [])}
    reason, message = pod_status.reason(status, runner, is_leaving)
    is_gated = KUEUE_ELASTIC in gates
    if is_gated:
        reason, message = "waits for Kueue", ""
    end, ended = pod_status.end(status, runner), pod_status.ended(status, runner)
    time, has_run_before = pod_status.started(status, runner)
    started = datetime.fromisoformat(time) if time else None
    conditions = {condition["type"]: condition["status"] for condition in status.get("conditions", [])}
    return Pod(
        index=int(metadata["labels"][INDEX]),
        name=metadata["name"],
        namespace=metadata["namespace"],
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        phase=status.get("phase", "Pending"),
        reason=reason,
        message=message,
        is_leaving=is_leaving,
        is_ready=conditions.get("Ready") == "True",
        runner=runner,
        failing={} if is_leaving else dict(pod_status.failing(status, runner)),
        failures=_failures(metadata.get("annotations", {})) if status.get("phase") == "Failed" else 0,
        ended=datetime.fromisoformat(ended) if ended else None,
        exit_code=end.get("exitCode"),
        node=item.get("spec", {}).get("nodeName", ""),
        zone=metadata["labels"].get(ZONE, ""),
        is_replaced=conditions.get("DisruptionTarget") == "True" or end.get("exitCode") in (None, *REPLACED_CODES),
        is_cut_off=pod_status.is_cut_off(status, conditions),
        is_gated=is_gated,
        # since Kubernetes 1.29; before, an event may be told that is over
        is_set_up=conditions.get("PodReadyToStartContainers") == "True",
        cluster=metadata["labels"].get(CLUSTER_LABEL, ""),
        kept_by=pod_status.kept_by(status, runner),
        started=started,
        came_back=started if has_run_before else None,
    )


def _failures(annotations: Mapping[str, str]) -> int:
    """Return how many pods of an index have failed, with this one; 0 if Kubernetes doesn't count them."""
    if FAILURES not in annotations:
        return 0
    return 1 + int(annotations[FAILURES]) + int(annotations.get(IGNORED_FAILURES, "0"))
