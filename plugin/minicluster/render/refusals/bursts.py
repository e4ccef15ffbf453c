"""Refusals of bursts that can't follow the queue."""

from collections.abc import Iterable, Iterator

from minicluster.errors import SpecError
from minicluster.render.burst_spec import BurstSpec, parse, problems
from minicluster.render.model import MiniClusterModel

WHERE = "flux.bursting.follow"
#: The context of the Deployment's own cluster (charts/minicluster/templates/follow/configmap.yaml).
OWN_CONTEXT = "in-cluster"


def bursts(cluster: MiniClusterModel) -> Iterator[str]:
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
            f"{WHERE}.bursts is set without an image: name a release's image minicluster in {WHERE}.image, or one that "
            "gitops/follow/Containerfile builds"
        )
    expose = cluster.flux["bursting"]["expose"]
    if not (expose["type"] or expose["address"]):
        yield f"{WHERE}.bursts is set and flux.bursting.expose is not: the bursts reach the lead by it; set its type"
    try:
        parsed = [parse(text) for text in follow["bursts"]]
    except SpecError as error:
        yield f"{WHERE}.bursts has {error}"
        return
    registered = {burst["name"]: burst["size"] for burst in cluster.bursts}
    for problem in (*problems(parsed, registered), *_without_secret(cluster, parsed)):
        yield f"{WHERE}.bursts has {problem}"


def _without_secret(cluster: MiniClusterModel, bursts: Iterable[BurstSpec]) -> Iterator[str]:
    """Yield the bursts whose context is in no kubeconfig."""
    if cluster.flux["bursting"]["follow"]["kubeconfigSecret"]:
        return
    for one in bursts:
        if one.context not in (None, "", OWN_CONTEXT):
            yield (
                f"{one.name} in context {one.context}, and there is no kubeconfigSecret: name a Secret with that "
                f"context, or write {one.name}@NAMESPACE for this cluster"
            )
