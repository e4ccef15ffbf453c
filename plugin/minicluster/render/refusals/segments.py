"""Refusals of segments: places that nothing would give them, and sizes that Kueue would cut."""

from collections.abc import Iterator

from minicluster.render.model import MiniClusterModel

#: Annotations of a pod by which Kueue places segments.
ANNOTATIONS = ("kueue.x-k8s.io/podset-slice-required-topology", "kueue.x-k8s.io/podset-slice-size")


def segments(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield what is wrong with the segments of the cluster's own nodes and of its groups."""
    own = cluster.spec["pod"]["segments"]
    if own:
        yield from _beside_bursts(cluster)
    yield from _of_pods(cluster, "pod")
    yield from _cut(cluster, "size", cluster.size)
    for group in cluster.groups:
        if group.cluster.spec["pod"]["segments"] != own:
            yield from _of_pods(group.cluster, f"{group.place}.pod")
        yield from _cut(group.cluster, f"{group.place}.size", group.size)


def _beside_bursts(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield hosts whose segments nobody knows."""
    if cluster.joins:
        yield "pod.segments and flux.bursting.leadBroker are both set: a burst has none; drop pod.segments"
    elif cluster.flux["bursting"]["hostlist"] and not cluster.root_groups:
        yield "pod.segments and flux.bursting.hostlist are both set: give flux.bursting.clusters in place of hostlist"


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
