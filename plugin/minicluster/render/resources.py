"""The cores and GPUs of the cluster's nodes: the resource set R (RFC 20)."""

import json
import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from minicluster.errors import SpecError
from minicluster.flux.idset import to_idset
from minicluster.render import devices
from minicluster.render.hostlist import Hosts, ranked
from minicluster.render.model import MiniClusterModel
from minicluster.render.quantity import to_number

#: More CPUs or GPUs than any node has: such a number, as 4G, is a slip.
TOO_MANY_CPUS = 2**31
#: Stands for an idset of cores: those that Flux finds on the lead's node. resources.sh replaces it.
OWN = "own"


class NodeRange(NamedTuple):
    """Nodes of consecutive ranks, with the ``cores`` and ``gpus`` of each; cores None: those that Flux finds there."""

    ranks: str  #: an idset
    hosts: str  #: a hostlist
    cores: int | None
    gpus: int
    properties: Mapping[str, str] = {}  #: the ranks that have each, as an idset


def nodes(cluster: MiniClusterModel) -> Iterator[NodeRange]:
    """Yield the nodes of R, in the order of their ranks."""
    for ranks, part in ranked(cluster):
        runner = part.group.cluster.runner if part.group else cluster.runner
        yield NodeRange(
            ranks=to_idset(ranks),
            hosts=part.hostlist,
            cores=cores(runner) if part.cores is None else part.cores,
            gpus=gpus(runner) if part.gpus is None else part.gpus,
            properties=dict(_properties(ranks, part)),
        )


def _properties(ranks: range, part: Hosts) -> Iterator[tuple[str, str]]:
    """Yield the properties by which jobs choose among some hosts, with the ranks that have each."""
    group = part.group
    for name in group.properties if group else ():
        yield name, to_idset(ranks)
    place = f"{group.name}-" if group else ""
    for number in range(math.ceil(len(ranks) / part.segment_size) if part.segment_size else 0):
        first = number * part.segment_size
        yield f"segment={place}{number}", to_idset(ranks[first : first + part.segment_size])


def resource_set(cluster: MiniClusterModel) -> str:
    """Return R as JSON, over all hosts that may ever join, with OWN for cores that Flux finds on the node."""
    listed = list(nodes(cluster))
    execution: dict[str, Any] = {
        "R_lite": [{"rank": part.ranks, "children": _children(part)} for part in listed],
        "starttime": 0.0,
        "expiration": 0.0,
        "nodelist": [part.hosts for part in listed],
    }
    ranks: dict[str, list[str]] = {}
    for part in listed:
        for name, those in part.properties.items():
            ranks.setdefault(name, []).append(those)
    if ranks:
        execution["properties"] = {name: ",".join(parts) for name, parts in ranks.items()}
    return json.dumps({"version": 1, "execution": execution})


def _children(part: NodeRange) -> dict[str, str]:
    ids = {"core": OWN if part.cores is None else to_idset(range(part.cores))}
    return ids | ({"gpu": to_idset(range(part.gpus))} if part.gpus else {})


def cores(runner: Mapping[str, Any]) -> int | None:
    """Return the cores of a node in R: ``cores``, else the CPU limit or request; None for those that Flux finds."""
    if runner.get("cores"):
        return int(runner["cores"])
    given = runner.get("resources", {})
    cpu = given.get("limits", {}).get("cpu", given.get("requests", {}).get("cpu"))
    return None if cpu is None else max(1, int(_number("cpu", cpu)))


def gpus(runner: Mapping[str, Any]) -> int:
    """Return the GPUs of a node in R: ``gpus``, else those in the limits of the runner."""
    if "gpus" in runner:
        return int(runner["gpus"])
    limits = devices.limits(runner)
    return sum(int(_number(name, number)) for name, number in limits.items() if devices.variable(name) is not None)


def requested_cpus(runner: Mapping[str, Any]) -> Decimal:
    """Return the CPUs that a container requests; as in Kubernetes, that is its limit if it has no request."""
    given = runner.get("resources", {})
    return _number("cpu", given.get("requests", {}).get("cpu", given.get("limits", {}).get("cpu", 0)))


def whole_cpus(runner: Mapping[str, Any]) -> int | None:
    """Return the CPUs that a container requests; None if it requests none, or a fraction."""
    asked = requested_cpus(runner)
    return int(asked) if asked and asked == int(asked) else None


def _number(name: str, value: object) -> Decimal:
    number = to_number(value)
    if number >= TOO_MANY_CPUS:
        raise SpecError(f"resources: {name} is {str(value)!r}: give a number, e.g. 4 or 500m")
    return number
