"""A burst, made of its root: the values of its release, its Secret, its ranks, and the address of the lead.

All of it is computed from what the root's release and the objects of its Kubernetes cluster say.
"""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from minicluster import yamlio
from minicluster.errors import BurstError
from minicluster.render import broker, defaults
from minicluster.render.hostlist import expand, hosts, table
from minicluster.render.idset import parse_idset, to_idset
from minicluster.render.load import load
from minicluster.render.model import MiniCluster

#: What the reason of a drain of ours begins with: whoever brings the hosts back undrains these, and no others.
OURS = "minicluster: "
#: Values that are the root's alone: its sizes, its work, its state, and what only its lead reads.
ROOTS = (
    *("nameOverride", "size", "maxSize", "minSize", "tasks", "interactive", "archive", "state", "services", "global"),
    *("autoscaling", "metrics", "agent"),
)
ROOTS_FLUX = ("submitCommand", "optionFlags", "scheduler", "minimalService", "curveCert", "curveCertSecret", "bursting")
ROOTS_NETWORK = ("headlessName", "clusterDomain")
ROOTS_RUNNER = ("command", "launcher", "batch", "batchRaw", "diagnostics")
ROOTS_COMMANDS = ("brokerPre", "script", "prefix")


@dataclass(frozen=True)
class Address:
    """Where the lead broker is reached."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return it as a ZeroMQ endpoint has it."""
        return f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str, port: int) -> "Address":
        """Return the address of HOST or HOST:PORT, an IPv6 host in brackets.

        Raises BurstError when it is none.
        """
        match = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[-.a-zA-Z0-9]+)(?::([0-9]{1,5}))?", text)
        number = int(match[2] or port) if match else 0
        if not match or not 0 < number < 65536:
            raise BurstError(f"the address {text!r} is none: write it as HOST or HOST:PORT, an IPv6 host in brackets")
        return cls(match[1], number)


@dataclass(frozen=True)
class Burst:
    """Hosts that a root has registered: ``size`` of them from rank ``first`` on, where they are ``hosts``."""

    name: str
    first: int
    size: int
    hosts: str
    is_release: bool  #: of pods; else hosts of a hostlist

    def ranks(self, size: int | None = None) -> str:
        """Return the ranks of the first ``size`` hosts, or of all, as an idset."""
        return to_idset(range(self.first, self.first + (size or self.size)))


def find(root: MiniCluster, name: str) -> Burst:
    """Return the burst of a name, or the hosts of a hostlist that a root has registered.

    Raises BurstError when the root has no such burst.
    """
    bursting = root.flux["bursting"]
    if root.joins:
        lead = bursting["leadBroker"]["name"]
        raise BurstError(f"{root.name} is a burst itself: a burst joins the root, which is {lead}")
    if bursting["hostlist"]:
        return _of_hostlist(root, name)
    if not root.bursts:
        raise BurstError(
            f"{root.name} has no flux.bursting.clusters: the hosts of bursts are registered when it is installed; "
            "uninstall it and install it with them"
        )
    first = root.max_size
    for one, part in zip(root.bursts, table(root)[1:], strict=True):
        if one["name"] == name:
            return Burst(name, first, one["size"], part.hostlist, is_release=True)
        first += one["size"]
    known = ", ".join(str(one["name"]) for one in root.bursts)
    raise BurstError(f"{root.name} has no burst {name}: flux.bursting.clusters has {known}")


def _of_hostlist(root: MiniCluster, name: str) -> Burst:
    hostlist = root.flux["bursting"]["hostlist"]
    registered, wanted = list(expand(hostlist)), list(expand(name))
    own = set(expand(hosts(root.name, root.max_size)))
    first = registered.index(wanted[0]) if wanted[0] in registered else 0
    if own & set(wanted) or registered[first : first + len(wanted)] != wanted:
        raise BurstError(
            f"{root.name} has no hosts {name} for a burst: name consecutive hosts of flux.bursting.hostlist that are "
            f"not its own; it is {hostlist}"
        )
    return Burst(name, first, len(wanted), name, is_release=False)


def check_size(root: MiniCluster, burst: Burst, size: int) -> None:
    """Raise BurstError when a burst is to have more hosts than its root has registered."""
    if not 1 <= size <= burst.size:
        raise BurstError(
            f"the size {size} is not what {root.name} has registered for {burst.name}: 1 to {burst.size} hosts; "
            "what a root registers can't grow while it lives"
        )


def secret_name(burst: Burst) -> str:
    """Return the name of the Secret with the root's certificate in the burst's namespace."""
    return f"{burst.name}-root-curve"


def secret(root: MiniCluster, burst: Burst, certificate: str, namespace: str = "") -> dict[str, Any]:
    """Return the Secret with the root's certificate, for the burst's namespace."""
    metadata: dict[str, Any] = {"name": secret_name(burst)}
    if namespace:
        metadata["namespace"] = namespace
    metadata["labels"] = {
        "app.kubernetes.io/name": "minicluster",
        "app.kubernetes.io/instance": burst.name,
        "app.kubernetes.io/part-of": root.name,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "stringData": {"curve.cert": certificate},
    }


def values(root: MiniCluster, burst: Burst, size: int, address: Address) -> dict[str, Any]:
    """Return the values of a burst: the root's pods as workers, without its work; what is not as in the chart.

    Raises BurstError for a size that is not registered.
    """
    check_size(root, burst, size)
    bursting = {"clusters": [dict(one) for one in root.bursts], "hostlist": root.flux["bursting"]["hostlist"]}
    lead = {"name": root.name, "address": address.host, "port": address.port, "size": root.max_size}
    flux = {key: value for key, value in root.flux.items() if key not in ROOTS_FLUX}
    secret = {"curveCertSecret": secret_name(burst)} if burst.is_release else {}
    made: dict[str, Any] = {
        "size": size,
        "maxSize": burst.size,
        **{key: value for key, value in root.spec.items() if key not in ROOTS},
        "containers": [_worker(c) if c is root.runner else dict(c) for c in root.spec["containers"]],
        "network": {key: value for key, value in root.spec["network"].items() if key not in ROOTS_NETWORK},
        "flux": {**flux, **secret, "bursting": {**bursting, "leadBroker": lead}},
    }
    found: dict[str, Any] = _differing(made, {**defaults.values(), "size": None})
    return found


def member(root: MiniCluster, burst: Burst, made: Mapping[str, Any]) -> MiniCluster:
    """Return the burst as a cluster. Raises SpecError for values that can't be one."""
    return load({"metadata": {"name": burst.name if burst.is_release else root.name}, "spec": made})


def _worker(runner: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in runner.items() if key not in ROOTS_RUNNER}
    commands = {key: value for key, value in runner.get("commands", {}).items() if key not in ROOTS_COMMANDS}
    return {**kept, "commands": commands} if commands else {k: v for k, v in kept.items() if k != "commands"}


def _differing(given: Any, defaults: Any) -> Any:
    """Return the part of a map that is not as the defaults have it."""
    found = {}
    for key, value in given.items():
        default = defaults.get(key)
        if isinstance(value, dict) and isinstance(default, dict):
            value = _differing(value, default)  # noqa: PLW2901 - what is left of it
            if not value:
                continue
        elif key in defaults and value == default:
            continue
        found[key] = value
    return found


def needs(made: Mapping[str, Any]) -> list[str]:
    """Return the objects that the burst's namespace must have before its pods can run, but for the certificate."""
    pod, flux, found = made.get("pod", {}), made.get("flux", {}), []
    for container in made.get("containers", []):
        for volume in container.get("volumes", {}).values():
            kinds = {"claimName": "PersistentVolumeClaim", "secretName": "Secret", "configMapName": "ConfigMap"}
            found += [f"{kind} {volume[key]}" for key, kind in kinds.items() if volume.get(key)]
        found += [f"Secret {reference['name']}" for reference in container.get("secrets", {}).values()]
        found += [f"Secret {container['imagePullSecret']}"] if container.get("imagePullSecret") else []
    found += [f"Secret {name}" for name in pod.get("imagePullSecrets", [])]
    found += [f"Secret {flux['mungeSecret']}"] if flux.get("mungeSecret") else []
    pull_secret = flux.get("container", {}).get("imagePullSecret")
    found += [f"Secret {pull_secret}"] if pull_secret else []
    found += [f"ServiceAccount {pod['serviceAccountName']}"] if pod.get("serviceAccountName") else []
    return sorted(set(found))


def service_port(root: MiniCluster, service: Mapping[str, Any]) -> int:
    """Return the port of the lead from outside: that of its Service, or what the values say of it."""
    ports = service.get("spec", {}).get("ports", [{}])
    if service.get("spec", {}).get("type") == "LoadBalancer":
        return broker.PORT
    expose = root.flux["bursting"]["expose"]
    return int(ports[0].get("nodePort") or (expose["nodePort"] if expose["type"] == "NodePort" else 0) or broker.PORT)


def lead_address(
    root: MiniCluster, service: Mapping[str, Any], pod: Mapping[str, Any], node: Mapping[str, Any]
) -> Address:
    """Return the address that the Service of the lead has for those outside: its load balancer's, or its node's.

    Of the node its external address counts before that which the pod has of it. An object that is not there is
    empty. Raises BurstError when there is no address.
    """
    name = f"{root.name}-lead"
    if not service:
        raise BurstError(
            f"there is no Service {name}: install {root.name} with flux.bursting.expose.type, or give --address"
        )
    if service["spec"]["type"] == "LoadBalancer":
        for ingress in service.get("status", {}).get("loadBalancer", {}).get("ingress", []):
            if host := ingress.get("ip") or ingress.get("hostname"):
                return Address(_bracketed(host), broker.PORT)
        raise BurstError(f"the load balancer of the Service {name} has no address yet: wait for it, or give --address")
    external = [one["address"] for one in node.get("status", {}).get("addresses", []) if one["type"] == "ExternalIP"]
    host = next(iter(external), pod.get("status", {}).get("hostIP", ""))
    if not host:
        raise BurstError(f"the lead of {root.name} runs on no node: wait for its pod, or give --address")
    return Address(_bracketed(host), service_port(root, service))


def _bracketed(host: str) -> str:
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host


def drained_by_us(burst: Burst, drains: Iterable[str]) -> list[int]:
    """Return the burst's ranks that we drained; ``drains`` are lines of ranks, a bar and the reason."""
    mine = set(parse_idset(burst.ranks()))
    lines = [line.partition("|") for line in drains]
    return sorted(mine & {rank for ranks, _, reason in lines if reason.startswith(OURS) for rank in parse_idset(ranks)})


def document(text: bytes) -> dict[str, Any]:
    """Return a file of values. Raises BurstError when it is no map in YAML."""
    try:
        found = yamlio.load(text)
    except yaml.YAMLError as error:
        raise BurstError(f"the values are not YAML: {yamlio.problem(error)}") from None
    found = {} if found is None else found
    if not isinstance(found, dict):
        raise BurstError(f"the values are a {type(found).__name__}: they must be a map")
    return found
