"""Refusals of values that contradict Kueue, a gang, or a suspended Job, and of segments that Kueue would cut."""

from collections.abc import Iterator

from minicluster.documents import map_at
from minicluster.render.constants import KUEUE_ELASTIC, KUEUE_PRIORITY, KUEUE_QUEUE
from minicluster.render.model import MiniClusterModel
from minicluster.render.refusals import kubernetes

#: Annotations by which Kueue starts fewer pods than the Job asks for.
PARTIAL = ("kueue.x-k8s.io/job-min-parallelism", "kueue.x-k8s.io/job-completions-equal-parallelism")
#: The first version of Kubernetes whose gangs can change their size.
RESIZABLE = (1, 37)
#: Where a gang scheduler finds the name of a pod's PodGroup, by kind of gang: the map of the pod, and the key.
GANG_METADATA = {
    "volcano": ("annotations", "scheduling.k8s.io/group-name"),
    "coscheduling": ("labels", "scheduling.x-k8s.io/pod-group"),
}


def job_metadata(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield labels and annotations of the Job that the chart writes, or that other values contradict."""
    labels, annotations, kueue = (cluster.spec[key] for key in ("jobLabels", "jobAnnotations", "kueue"))
    for key in annotations:
        if key.startswith("minicluster/"):
            yield f"jobAnnotations has {key}: the chart writes what begins with minicluster/; choose another name"
        if key in PARTIAL:
            yield (
                f"jobAnnotations has {key}: Kueue would start fewer pods than size, and the work would wait for the "
                "rest; lower size, or set kueue.elastic and grow later"
            )
    for key, field in ((KUEUE_QUEUE, "queueName"), (KUEUE_PRIORITY, "priorityClass")):
        if kueue[field] and labels.get(key, kueue[field]) != kueue[field]:
            yield f"jobLabels has {key} {labels[key]}, kueue.{field} is {kueue[field]}: drop the label"
    if KUEUE_ELASTIC in annotations and (annotations[KUEUE_ELASTIC] == "true") != kueue["elastic"]:
        yield (
            f"jobAnnotations has {KUEUE_ELASTIC} {annotations[KUEUE_ELASTIC]}, "
            f"kueue.elastic is {str(kueue['elastic']).lower()}: drop the annotation and set kueue.elastic"
        )


def queue(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield values that Kueue would undo, or for which it would restart all pods."""
    name = cluster.queue
    if not name:
        return
    if cluster.spec["suspend"]:
        yield (
            f"suspend is true and the Job is in Kueue's queue {name}, which would resume it: deactivate its Workload, "
            '`kubectl patch workload NAME --type=merge -p \'{"spec":{"active":false}}\'`, or drop suspend'
        )
    if cluster.autoscaling and not cluster.spec["kueue"]["elastic"]:
        yield (
            f"autoscaling is on and the Job is in Kueue's queue {name}, which restarts all pods when the size changes: "
            "set kueue.elastic, or turn autoscaling off"
        )


def gang(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield values of a gang scheduler that lack another value, or that are set twice."""
    kind, pod = cluster.spec["gang"]["kind"], cluster.spec["pod"]
    if cluster.spec["gang"]["queue"] and kind != "volcano":
        yield "gang.queue is set and gang.kind is not volcano, which alone has queues: drop gang.queue"
    if kind == "kubernetes":
        yield from _native_gang(cluster)
    if kind not in GANG_METADATA:
        return
    if not pod["schedulerName"]:
        yield f"gang.kind is {kind} and pod.schedulerName is unset, so no scheduler reads the PodGroup: set it"
    where, key = GANG_METADATA[kind]
    if key in pod[where]:
        yield f"pod.{where} has {key} and gang.kind is {kind}, which sets it: drop one of them"


def _native_gang(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield values that contradict a gang of Kubernetes' own scheduler."""
    for place, part, field in (
        ("pod.template", cluster.spec["pod"]["template"], "schedulingGroup"),
        ("job.template", cluster.spec["job"]["template"], "scheduling"),
    ):
        if field in map_at(part, "spec"):
            yield f"{place}.spec has {field} and gang.kind is kubernetes, which makes the PodGroup: drop one of them"
    version = kubernetes.release(cluster.kubernetes)
    if cluster.autoscaling and version and version < RESIZABLE:
        yield (
            f"autoscaling is on and gang.kind is kubernetes, and Kubernetes {version[0]}.{version[1]} fixes the size "
            "of a gang: turn autoscaling off, or drop gang.kind"
        )


#: Annotations of a pod by which Kueue places segments.
ANNOTATIONS = ("kueue.x-k8s.io/podset-slice-required-topology", "kueue.x-k8s.io/podset-slice-size")


def segments(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield what is wrong with the segments of the cluster's own nodes and of its groups."""
    own, hostlist = cluster.spec["pod"]["segments"], cluster.flux["bursting"]["hostlist"]
    if own and hostlist and not (cluster.joins or cluster.root_groups):
        # nobody knows the segments of its hosts
        yield "pod.segments and flux.bursting.hostlist are both set: give flux.bursting.clusters in place of hostlist"
    yield from _of_pods(cluster, "pod")
    yield from _cut(cluster, "size", cluster.size)
    for group in cluster.groups:
        if group.cluster.spec["pod"]["segments"] != own:
            yield from _of_pods(group.cluster, f"{group.place}.pod")
        yield from _cut(group.cluster, f"{group.place}.size", group.size)


def _of_pods(cluster: MiniClusterModel, place: str) -> Iterator[str]:
    """Yield what keeps Kueue from placing the segments of a Job's pods."""
    given = cluster.spec["pod"]["segments"]
    key = given.get("topologyKey")
    if given and not cluster.segment_size:
        yield f"{place}.segments has no size: give the number of nodes in a segment, or drop it"
    if not key:
        return
    where = f"{place}.segments.topologyKey is {key}"
    if not cluster.queue:
        yield (
            f"{where} and kueue.queueName is unset: Kubernetes alone places no pods by their index; set the queue, "
            "drop topologyKey, or make each segment a group with a pod affinity"
        )
    if cluster.spec["kueue"]["elastic"]:
        yield f"{where} and kueue.elastic is true: Kueue places no segments of an elastic Job; drop one of them"
    for name in ANNOTATIONS:
        if name in cluster.spec["pod"]["annotations"]:
            yield f"pod.annotations has {name}, which {place}.segments sets: drop the annotation"


def _cut(cluster: MiniClusterModel, field: str, size: int) -> Iterator[str]:
    """Yield a number of pods of which Kueue would leave some out."""
    length = cluster.segment_size
    if length and cluster.spec["pod"]["segments"].get("topologyKey") and (size == 0 or size % length):
        yield f"{field} is {size} and Kueue places whole segments of {length}: give a multiple of {length}"
