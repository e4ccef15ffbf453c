"""Refusals of resource claims that the pods don't have, and of GPUs of several kinds."""

from collections.abc import Iterator

from minicluster.render import devices
from minicluster.render.model import MiniClusterModel

#: Where a claim of the pod can come from.
CLAIM_SOURCES = ("resourceClaimName", "resourceClaimTemplateName", "spec")


def pod_claims(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield claims of the pod without one source, or with another one's name."""
    names = [claim["name"] for claim in cluster.spec["pod"]["resourceClaims"]]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"pod.resourceClaims has {name} twice: rename one of them"
    for n, claim in enumerate(cluster.spec["pod"]["resourceClaims"]):
        given = [key for key in CLAIM_SOURCES if key in claim]
        if len(given) != 1:
            yield (
                f"pod.resourceClaims[{n}] ({claim['name']}) has {' and '.join(given) or 'no source'}: "
                f"give exactly one of {', '.join(CLAIM_SOURCES)}"
            )


def used_claims(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield claims of containers that their pod doesn't have."""
    of_pod = {claim["name"] for claim in cluster.spec["pod"]["resourceClaims"]} | _added(cluster)
    for place, container in {**cluster.own_containers, **cluster.containers}.items():
        is_elsewhere = place.startswith(("services", "flux.bursting.follow", "hooks"))
        for claim in container.get("resources", {}).get("claims", []):
            name = claim["name"]
            if is_elsewhere:
                yield f"{place}.resources.claims has {name}: only the brokers' pods have claims; drop it"
            elif name not in of_pod:
                there = ", ".join(sorted(of_pod)) or "none"
                yield f"{place}.resources.claims has {name}, and pod.resourceClaims has {there}: add it there"


def _added(cluster: MiniClusterModel) -> set[str]:
    """Return the names of the claims that pod.template adds."""
    spec = cluster.spec["pod"]["template"].get("spec")
    claims = spec.get("resourceClaims") if isinstance(spec, dict) else None
    listed = claims if isinstance(claims, list) else []
    return {str(claim.get("name")) for claim in listed if isinstance(claim, dict)}


def kinds(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield GPUs of several kinds, unless ``gpus`` says what Flux has: a task is told its GPUs by one variable."""
    if "gpus" in cluster.runner:
        return
    variables = {name: devices.variable(name) for name in devices.limits(cluster.runner)}
    known = {text: name for name, text in variables.items() if text is not None}
    if len(known) > 1:
        place = next(place for place, container in cluster.containers.items() if container is cluster.runner)
        yield (
            f"{place}.resources.limits has {' and '.join(known.values())}: Flux numbers one kind of GPU; drop the "
            f"other, or set {place}.gpus"
        )
