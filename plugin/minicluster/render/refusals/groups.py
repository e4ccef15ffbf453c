"""Refusals of groups: names, sizes, and what a group can't be beside."""

import re
from collections.abc import Iterator

from minicluster.kube.names import NAME_CHARACTERS
from minicluster.render import devices
from minicluster.render.model import MiniClusterModel, NodeGroup
from minicluster.render.refusals import containers, kubernetes, pod, queues, volumes
from minicluster.render.refusals.sizes import MOST_PODS, bounds
from minicluster.render.resources import cores

#: Fields of `pod` that are the same for all groups.
SHARED = ("onStop", "terminationGracePeriodSeconds", "hostNetwork", "disruptionBudget")
#: What is checked of a group's pods as of the cluster's own.
PODS = (
    containers.resources,
    containers.cores,
    pod.exclusive,
    pod.gpu_kinds,
    pod.pod_claims,
    pod.used_claims,
    pod.fields,
    kubernetes.fields,
    queues.gang,
    volumes.volumes,
)


def groups(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield what is wrong with the groups."""
    if not cluster.groups:
        return
    hosts = cluster.max_size + sum(group.max_size for group in cluster.groups)
    if hosts > MOST_PODS:
        yield f"maxSize and the groups' come to {hosts} hosts: at most {MOST_PODS} can be; lower one"
    known = set[str]()
    of_the_cluster = {refusal for check in PODS for refusal in check(cluster)}
    for group in cluster.groups:
        if group.name in known:
            yield f"{group.place}.name is {group.name}, as of another group: give each a name of its own"
        known.add(group.name)
        yield from _sizes(cluster, group)
        if cores(group.cluster.runner) is None:
            yield (
                f"the cores of {group.place}, {group.name}, are unknown, because its nodes may be unlike the lead's: "
                f"set {group.place}.resources.limits.cpu or {group.place}.cores"
            )
        yield from _devices(cluster, group)
        yield from _shared(cluster, group)
        yield from _gang(cluster, group)
        for refusal in (refusal for check in PODS for refusal in check(group.cluster)):
            if refusal not in of_the_cluster:
                yield f"in {group.place}, {group.name}: {refusal}"


def _devices(cluster: MiniClusterModel, group: NodeGroup) -> Iterator[str]:
    """Yield devices that Flux doesn't count, and claims that the release would not make."""
    for sentence in sorted(set(devices.uncounted(group.cluster)) - set(devices.uncounted(cluster))):
        yield re.sub(r"containers\[[0-9]+\]", group.place, sentence)
    claims_of_pod = group.cluster.spec["pod"]["resourceClaims"]
    if claims_of_pod != cluster.spec["pod"]["resourceClaims"]:
        for n, claim in enumerate(claims_of_pod):
            if "spec" in claim:
                yield (
                    f"{group.place}.pod.resourceClaims[{n}].spec is set: the release makes only the claims of "
                    "pod.resourceClaims; move it there"
                )


def _shared(cluster: MiniClusterModel, group: NodeGroup) -> Iterator[str]:
    """Yield fields of a group's pods whose meaning is in the settings that all pods share."""
    for field in SHARED:
        if group.cluster.spec["pod"][field] != cluster.spec["pod"][field]:
            yield f"{group.place}.pod.{field} differs from pod.{field}, and all pods have one: set it there"


def _gang(cluster: MiniClusterModel, group: NodeGroup) -> Iterator[str]:
    """Yield what would keep a group's pods out of the gang, which would then never be complete."""
    kind, names = cluster.spec["gang"]["kind"], [one.spec["pod"]["schedulerName"] for one in (cluster, group.cluster)]
    if kind and names[0] != names[1]:
        yield (
            f"{group.place}.pod.schedulerName is {names[1] or 'unset'}, pod.schedulerName {names[0] or 'unset'}, and "
            "one scheduler starts all pods of a gang: drop it"
        )


def _autoscaling(cluster: MiniClusterModel, group: NodeGroup) -> Iterator[str]:
    """Yield limits of the autoscaler that contradict each other."""
    place = group.place
    if not group.autoscaling:
        if "autoscaling" in group.given:
            yield f"{place}.autoscaling is set and autoscaling.enabled is off: enable it, or drop the limits"
        return
    yield from bounds(f"{place}.", group.autoscaling, group.size, group.max_size, group.min_size)
    low = group.autoscaling["min"]
    if low and cluster.autoscaling["suspendAfterSeconds"]:
        yield (
            f"{place}.autoscaling.min is {low} and autoscaling.suspendAfterSeconds set, and the group keeps its pods: "
            "set min to 0, or drop suspendAfterSeconds"
        )


def _sizes(cluster: MiniClusterModel, group: NodeGroup) -> Iterator[str]:
    place, size, most = group.place, group.size, group.max_size
    if most < size:
        yield f"{place}.size is {size}, its maxSize {most}: lower size, or install with a larger maxSize"
    if group.min_size > size and "minSize" in group.given:
        yield f"{place}.minSize is {group.min_size}, its size {size}: lower minSize"
    yield from _autoscaling(cluster, group)
    last = f"{cluster.name}-{group.name}-{most - 1}"
    if len(last) > NAME_CHARACTERS:
        yield (
            f"the last pod of {place} would be {last}, {len(last)} characters: {NAME_CHARACTERS} are allowed; shorten "
            "a name"
        )
