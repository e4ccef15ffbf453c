"""Refusals of bursts that can't follow the queue."""

from collections.abc import Iterator

from minicluster.errors import SpecError
from minicluster.render.model import MiniCluster
from minicluster.render.wanted import Wanted, parse

WHERE = "flux.bursting.follow"
#: The context of the Deployment's own cluster (charts/minicluster/templates/follow-configmap.yaml).
OWN = "in-cluster"


def bursts(cluster: MiniCluster) -> Iterator[str]:
    """Yield what is wrong with the bursts that follow the queue, and what is missing for them."""
    follow = cluster.flux["bursting"]["follow"]
    if not follow["bursts"]:
        return
    if cluster.joins:
        yield f"{WHERE}.bursts is set beside leadBroker: the queue is the lead cluster's; set it there"
        return
    if not cluster.flux["bursting"]["clusters"]:
        yield f"{WHERE}.bursts is set without flux.bursting.clusters: register the bursts there"
        return
    if not follow["image"]:
        yield (
            f"{WHERE}.bursts is set without an image: none is published; build one from gitops/follow/Containerfile, "
            f"and name it in {WHERE}.image"
        )
    try:
        found = [parse(text) for text in follow["bursts"]]
    except SpecError as error:
        yield f"{WHERE}.bursts has {error}"
        return
    for one in found:
        yield from _burst(cluster, one)
    names = [one.name for one in found]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{WHERE}.bursts names {name} twice: a burst runs in one place; drop one of them"


def _burst(cluster: MiniCluster, one: Wanted) -> Iterator[str]:
    """Yield what is wrong with one of them."""
    sizes = {burst["name"]: burst["size"] for burst in cluster.bursts}
    if one.name not in sizes:
        yield f"{WHERE}.bursts has {one.name}: flux.bursting.clusters has {', '.join(sizes)}; name one of these"
        return
    registered = sizes[one.name]
    most = registered if one.max is None else one.max
    if not 1 <= most <= registered:
        yield f"{WHERE}.bursts has {one.name} with at most {most} hosts: give 1 to {registered}, which are registered"
    elif one.min > most:
        yield f"{WHERE}.bursts has {one.name} with at least {one.min} and at most {most} hosts: lower the first"
    if one.context not in (None, "", OWN) and not cluster.flux["bursting"]["follow"]["kubeconfigSecret"]:
        yield (
            f"{WHERE}.bursts has {one.name} in context {one.context}, and there is no kubeconfigSecret: name a Secret "
            f"with that context, or write {one.name}@NAMESPACE for this cluster"
        )
