"""A burst as it is computed from its root: its ranks, the values of its release, and its Secret."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from minicluster.burst.address import Address
from minicluster.documents import yamlio
from minicluster.errors import BurstError
from minicluster.flux import expand_hosts, parse_idset, to_idset
from minicluster.render import constants, curve, resources
from minicluster.render.load import load
from minicluster.render.model import MiniClusterModel, NodeGroup
from minicluster.render.resources import hostlist_of, ranked, root_hosts

#: Values that a burst does not get, by their place: the root's sizes, its work, its state, what only its lead reads.
ROOTS = {
    "": (
        *("nameOverride", "size", "maxSize", "minSize", "tasks", "interactive", "archive", "state", "services"),
        *("global", "report", "autoscaling", "metrics", "agent", "groups", "schedules", "endAfterSeconds"),
    ),
    "flux": (
        *("submitCommand", "optionFlags", "scheduler", "queues", "preemption", "minimalService"),
        *("curveCert", "curveCertSecret", "bursting"),
    ),
    "network": ("headlessName", "clusterDomain"),
    "pod": ("disruptionBudget", "segments"),
    "runner": ("command", "launcher", "batch", "batchRaw", "diagnostics"),
    "runner.commands": ("brokerPre", "script", "prefix"),
}
#: The label of a burst's Secret that has the root's name
ROOT_LABEL = "app.kubernetes.io/part-of"


@dataclass(frozen=True)
class Burst:
    """Hosts that a root has registered."""

    name: str
    first: int  #: the rank of the first host
    size: int
    hosts: str  #: as a hostlist
    is_release: bool  #: whether the hosts are pods of a release; else they are machines of a hostlist

    def ranks(self, size: int | None = None) -> str:
        """Return the ranks of the first ``size`` hosts, or of all, as an idset."""
        return to_idset(range(self.first, self.first + (size or self.size)))


def find(root: MiniClusterModel, name: str) -> Burst:
    """Return the burst of a name, or the hosts of a hostlist that a root has registered.

    Raises BurstError when the root has no such burst.
    """
    bursting = root.flux["bursting"]
    if root.joins:
        raise BurstError(f"{root.name} is a burst itself: name its root, {bursting['leadBroker']['name']}, instead")
    if bursting["hostlist"]:
        return _of_hostlist(root, name)
    if not root.bursts:
        raise BurstError(
            f"{root.name} has no flux.bursting.clusters: the hosts of bursts are registered at its install; uninstall "
            "it, and install it with them"
        )
    for one, (ranks, part) in zip(root.bursts, list(ranked(root))[-len(root.bursts) :], strict=True):
        if one["name"] == name:
            return Burst(name, ranks.start, len(ranks), part.hostlist, is_release=True)
    known = ", ".join(str(one["name"]) for one in root.bursts)
    raise BurstError(f"{root.name} has no burst {name}: flux.bursting.clusters has {known}")


def _of_hostlist(root: MiniClusterModel, name: str) -> Burst:
    hostlist = root.flux["bursting"]["hostlist"]
    registered, wanted = list(expand_hosts(hostlist)), list(expand_hosts(name))
    own = set(expand_hosts(hostlist_of(root_hosts(root))))
    first = registered.index(wanted[0]) if wanted[0] in registered else 0
    if own & set(wanted) or registered[first : first + len(wanted)] != wanted:
        raise BurstError(
            f"{root.name} has no hosts {name} for a burst: flux.bursting.hostlist is {hostlist}; name hosts that are "
            "consecutive in it, and not the root's own"
        )
    return Burst(name, first, len(wanted), name, is_release=False)


def check_size(root: MiniClusterModel, burst: Burst, size: int) -> None:
    """Raise BurstError for a size that the root has no registered hosts for."""
    if not 1 <= size <= burst.size:
        raise BurstError(
            f"the size {size} is impossible: {root.name} has registered {burst.size} hosts for {burst.name}, so give 1 "
            f"to {burst.size}; a live root can't register more"
        )


def secret_name(burst: Burst) -> str:
    """Return the name of the Secret with the root's certificate in the burst's namespace."""
    return f"{burst.name}-root-curve"


def secret(root: MiniClusterModel, burst: Burst, certificate: str, namespace: str = "") -> dict[str, Any]:
    """Return the Secret with the root's certificate, for the burst's namespace."""
    labels = {
        "app.kubernetes.io/name": "minicluster",
        "app.kubernetes.io/instance": burst.name,
        ROOT_LABEL: root.name,
    }
    where = {"namespace": namespace} if namespace else {}
    return curve.secret({"name": secret_name(burst), **where, "labels": labels}, certificate)


def values(root: MiniClusterModel, burst: Burst, size: int, address: Address) -> dict[str, Any]:
    """Return the values of a burst that differ from the chart's: the root's pods as workers, without its work.

    Raises BurstError for a size that is not registered.
    """
    check_size(root, burst, size)
    bursting = {"clusters": [dict(one) for one in root.bursts], "hostlist": root.flux["bursting"]["hostlist"]}
    lead = {"name": root.name, "address": address.host, "port": address.port, "size": root.max_size}
    if root.groups:
        lead["groups"] = [_in_table(group) for group in root.groups]
    secret = {"curveCertSecret": secret_name(burst)} if burst.is_release else {}
    made: dict[str, Any] = {
        "size": size,
        "maxSize": burst.size,
        **_without_roots("", root.spec),
        "containers": [
            _worker(c) if c is root.runner else dict(c) for c in root.spec["containers"] if not c.get("leadOnly")
        ],
        "network": _without_roots("network", root.spec["network"]),
        "pod": _without_roots("pod", root.spec["pod"]),
        "flux": {**_without_roots("flux", root.flux), **secret, "bursting": {**bursting, "leadBroker": lead}},
    }
    return constants.differing_from_defaults(made, {**constants.default_values(), "size": None})


def _without_roots(place: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values at a place that a burst gets."""
    return {key: value for key, value in values.items() if key not in ROOTS[place]}


def _in_table(group: NodeGroup) -> dict[str, Any]:
    """Return what a burst has to know of a group of its root: the hosts, and their part of R."""
    runner, properties = group.cluster.runner, [name for name in group.properties if name != group.name]
    row: dict[str, Any] = {"name": group.name, "maxSize": group.max_size}
    row |= {"cores": resources.cores(runner), "gpus": resources.gpus(runner)}
    return row | ({"properties": properties} if properties else {})


def values_file(burst: Burst, made: Mapping[str, Any], secret_file: str) -> str:
    """Return the values of a burst as a file that begins with the commands that install it."""
    lines = [
        f"# {burst.name}: ranks {burst.ranks()} of {made['flux']['bursting']['leadBroker']['name']}",
        f"#   kubectl apply --server-side -f {secret_file or 'the file that --secret-file writes'}",
        f'#   helm install {burst.name} "$(minicluster chart path)" -f {burst.name}-values.yaml '
        "--post-renderer minicluster",
    ]
    return "\n".join(lines) + "\n" + yamlio.dump(made, marker=False).decode()


def member(root: MiniClusterModel, burst: Burst, made: Mapping[str, Any]) -> MiniClusterModel:
    """Return the burst as a MiniCluster. Raises SpecError for wrong values."""
    return load({"metadata": {"name": burst.name if burst.is_release else root.name}, "spec": made})


def _worker(runner: Mapping[str, Any]) -> dict[str, Any]:
    commands = _without_roots("runner.commands", runner.get("commands", {}))
    kept = _without_roots("runner", {**runner, "commands": commands})
    return {key: value for key, value in kept.items() if key != "commands" or value}


#: Kinds of the objects that must exist before pods can run, by the fields of volumes and of claims that name them
OF_VOLUMES = {"claimName": "PersistentVolumeClaim", "secretName": "Secret", "configMapName": "ConfigMap"}
OF_CLAIMS = {"resourceClaimName": "ResourceClaim", "resourceClaimTemplateName": "ResourceClaimTemplate"}


def needs(made: Mapping[str, Any]) -> list[str]:
    """Return the objects that must exist in the burst's namespace before its pods can run, but for the certificate."""
    pod, flux = made.get("pod", {}), made.get("flux", {})
    named = [("ServiceAccount", pod.get("serviceAccountName"))]
    named += [(kind, claim.get(key)) for claim in pod.get("resourceClaims", []) for key, kind in OF_CLAIMS.items()]
    secrets = [flux.get("mungeSecret"), flux.get("container", {}).get("imagePullSecret")]
    secrets += pod.get("imagePullSecrets", [])
    for container in made.get("containers", []):
        volumes = container.get("volumes", {}).values()
        named += [(kind, volume.get(key)) for volume in volumes for key, kind in OF_VOLUMES.items()]
        secrets += [container.get("imagePullSecret")]
        secrets += [reference["name"] for reference in container.get("secrets", {}).values()]
    named += [("Secret", name) for name in secrets]
    return sorted({f"{kind} {name}" for kind, name in named if name})


def drained(drains: Iterable[str], reason: str) -> list[int]:
    """Return the ranks whose drain has a reason that begins with ``reason``; each line is `IDSET|REASON`."""
    lines = [line.partition("|") for line in drains]
    return sorted({rank for ranks, _, why in lines if why.startswith(reason) for rank in parse_idset(ranks)})
