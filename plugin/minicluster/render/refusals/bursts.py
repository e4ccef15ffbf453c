"""Bursts that follow the queue, as users write them, NAME[:MIN-MAX][@[CONTEXT/]NAMESPACE], and their refusals."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from minicluster.errors import SpecError
from minicluster.kube.names import LABEL, NAME_CHARACTERS
from minicluster.render.model import MiniClusterModel

WHERE = "flux.bursting.follow"
#: The context of the Deployment's own cluster (charts/minicluster/templates/follow/configmap.yaml).
OWN_CONTEXT = "in-cluster"


class BurstSpec(NamedTuple):
    """A burst with its limits and its place; None for a part that is not given."""

    name: str
    min: int  #: hosts
    max: int | None  #: hosts; None: all that the root has registered
    context: str | None
    namespace: str | None

    def most(self, registered: int) -> int:
        """Return the largest size, in hosts, of a burst with ``registered`` hosts."""
        return registered if self.max is None else self.max


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


def parse(text: str) -> BurstSpec:
    """Return the burst that a text describes. Raises SpecError when it is not one.

    >>> parse("burst-0:1-4@cloud/jobs")
    BurstSpec(name='burst-0', min=1, max=4, context='cloud', namespace='jobs')
    """
    match = re.fullmatch(r"([^:@]+)(?::([0-9]{1,9})-([0-9]{1,9}))?(?:@(?:(.*)/)?([^/]*))?", text)
    if not match:
        raise SpecError(f"{text!r} is not NAME, NAME:MIN-MAX, NAME@NAMESPACE or NAME@CONTEXT/NAMESPACE")
    name, least, most, context, namespace = match.groups()
    if namespace and not (len(namespace) <= NAME_CHARACTERS and re.fullmatch(LABEL, namespace)):
        raise SpecError(
            f"{text!r} in the namespace {namespace!r}: use a-z, 0-9 and - there, at most {NAME_CHARACTERS} characters"
        )
    return BurstSpec(name, int(least or 0), None if most is None else int(most), context, namespace)


def problems(bursts: Sequence[BurstSpec], registered: Mapping[str, int]) -> Iterator[str]:
    """Yield what is wrong with some bursts; ``registered`` has the root's number of hosts for each name."""
    names = [one.name for one in bursts]
    for one in bursts:
        if one.name not in registered:
            yield f"{one.name}: flux.bursting.clusters has {', '.join(registered)}; name one of these"
            continue
        hosts = registered[one.name]
        most = one.most(hosts)
        if not 1 <= most <= hosts:
            yield f"{one.name} with at most {most} hosts: give 1 to {hosts}, which are registered"
        elif one.min > most:
            yield f"{one.name} with at least {one.min} and at most {most} hosts: lower the first"
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{name} twice: a burst runs in one place; drop one of them"
