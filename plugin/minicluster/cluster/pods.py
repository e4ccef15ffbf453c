"""Pods of an Indexed Job, read from ``kubectl get pods -o json``: the state of each, and the reason for it.

And the groups of a MiniCluster, which are nodes unlike its own. Each has a Job.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from minicluster.cluster import pod_status
from minicluster.cluster.troubles import explained, way_out
from minicluster.kube.names import INDEX
from minicluster.render.constants import GROUP_LABEL, KUEUE_ELASTIC, KUEUE_QUEUE

#: Label with the name of the MiniCluster
CLUSTER_LABEL = "app.kubernetes.io/instance"
#: Label with a pod's zone, from Kubernetes 1.35 on
ZONE = "topology.kubernetes.io/zone"
#: Annotation by which kubectl, and we, find the container that runs Flux
RUNNER = "kubectl.kubernetes.io/default-container"
#: Begins a text of ours for a pod's /bin/sh: the PATH of an image may name its application alone (pod/view/world.sh)
FIND_TOOLS = "PATH=${PATH:+$PATH:}/usr/bin:/bin; "
#: Exit codes of pods that were told to stop, killed, or lost when their Kubernetes node restarted: the Job's
#: podFailurePolicy replaces them
REPLACED_CODES = (pod_status.STOP_CODE, 137, 255)
#: Annotation of a Job that says who suspended it
SUSPENDED = "minicluster/suspended"


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
        return self.phase == "Pending" and (
            self.reason in pod_status.STUCK_REASONS or bool(self.is_silent and self.way_out)
        )

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
        failures=pod_status.failures(metadata.get("annotations", {})) if status.get("phase") == "Failed" else 0,
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


@dataclass(frozen=True)
class GroupNodes:
    """The nodes of a group."""

    name: str
    size: int  #: pods of its Job; 0 when the Job is gone
    first: int  #: rank of its first node
    max_size: int
    pods: Mapping[int, Pod]  #: by index
    is_suspended: bool = False  #: whether its Job is
    queue: str = ""  #: Kueue's, "" without
    uid: str = ""  #: of its Job
    why_held: str = ""  #: by Kueue
    why_no_pod: str = ""  #: what an event says of a pod that its Job could not make
    failures: int = 0  #: pods that failed and count


def registered(immutable: Mapping[str, str]) -> dict[str, int]:
    """Return {name: maxSize} of the groups, in the order of their ranks, from a Job's record of immutable values."""
    sizes: dict[str, int] = {}
    while name := immutable.get(f"groups[{len(sizes)}].name"):
        sizes[name] = int(immutable[f"groups[{len(sizes)}].maxSize"])
    return sizes


def size_of(job: Mapping[str, Any]) -> int:
    """Return the number of pods that the Job of a group should have.

    If that is 0, the Job is suspended, or with autoscaling or in a queue of Kueue has no parallelism. A Job that Kueue
    holds back, or the value `suspend`, has its size.
    """
    spec = job["spec"]
    is_held = queue_of(job) or SUSPENDED in job["metadata"].get("annotations", {})
    return int(spec["completions"]) if spec["parallelism"] and (is_held or not spec.get("suspend")) else 0


def queue_of(job: Mapping[str, Any]) -> str:
    """Return the queue of Kueue that a Job is in, "" for none."""
    return str(job["metadata"].get("labels", {}).get(KUEUE_QUEUE, ""))


def read_groups(
    groups: Mapping[str, int], first: int, jobs: Mapping[str, Any] | None, pods: Mapping[str, Any]
) -> Iterator[GroupNodes]:
    """Yield the groups of {name: maxSize}, from lists of Jobs and pods; ``first`` is the rank of their first node.

    Where the user may not list Jobs, the highest index of its pods tells a group's size.
    """
    items = jobs.get("items", []) if jobs else []
    by_name = {job["metadata"].get("labels", {}).get(GROUP_LABEL): job for job in items}
    for name, most in groups.items():
        its = read_pods(pods, name)
        if job := by_name.get(name):
            is_suspended, uid = job["spec"].get("suspend", False), job["metadata"].get("uid", "")
            failed = job.get("status", {}).get("failed", 0)
            yield GroupNodes(name, size_of(job), first, most, its, is_suspended, queue_of(job), uid, failures=failed)
        else:
            yield GroupNodes(name, max(its, default=-1) + 1 if jobs is None else 0, first, most, its)
        first += most
