"""The host table, which host has which rank, and the cores and GPUs of each host: the resource set R (RFC 20).

And what a job asks of them.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any, NamedTuple

from minicluster.errors import SpecError
from minicluster.flux import count_hosts, indexed_hosts, to_idset
from minicluster.kube.names import to_number
from minicluster.render import devices
from minicluster.render.model import MiniClusterModel, NodeGroup

#: More CPUs or GPUs than any node has: such a number, as 4G, is a slip.
TOO_MANY_CPUS = 2**31
#: Stands for an idset of cores: those that Flux finds on the lead's node. resources.sh replaces it.
OWN = "own"
#: Flags whose value decides how many nodes and cores a job needs, by what they count (flux-submit(1), flux-batch(1)).
COUNT_FLAGS = {
    "nodes": ("-N", "--nodes"),
    "tasks": ("-n", "--ntasks", "--nslots"),
    "cores": ("-c", "--cores-per-task", "--cores-per-slot"),
}
#: Flags that count in other ways.
OTHERS = ("--cores", "--tasks-per-node", "--tasks-per-core", "--gpus-per-node", "--exclusive", "-x")


class Hosts(NamedTuple):
    """Hosts of consecutive ranks, with the ``cores`` and ``gpus`` of each. None: those of their pods."""

    hostlist: str
    cores: int | None = None
    gpus: int | None = None
    group: NodeGroup | None = None  #: of the root; None for its own hosts, and for those of bursts
    segment_size: int = 0  #: hosts of a segment; 0 without segments


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


def table(cluster: MiniClusterModel) -> list[Hosts]:
    """Return the hosts in the order of their ranks.

    A root's own hosts come first, all maxSize of them, then those of its groups, then those of the clusters that may
    join it. A burst has the table of its root, rank for rank.
    """
    given: str = cluster.flux["bursting"]["hostlist"]
    if given and not cluster.root_groups:
        return [Hosts(given)]
    of_root = root_hosts(cluster)
    if given:
        others = given.removeprefix(hostlist_of(of_root)).removeprefix(",")
        return [*of_root, *([Hosts(others)] if others else [])]
    bursts = (Hosts(indexed_hosts(c["name"], c["size"]), c.get("cores"), c.get("gpus")) for c in cluster.bursts)
    return [*of_root, *bursts]


def root_hosts(cluster: MiniClusterModel) -> list[Hosts]:
    """Return the hosts of the root, in the order of their ranks: its own, then those of its groups."""
    lead = cluster.flux["bursting"]["leadBroker"]
    name, size = (lead["name"], lead["size"]) if cluster.joins else (cluster.name, cluster.max_size)
    groups = (
        Hosts(indexed_hosts(f"{name}-{g.name}", g.max_size), group=g, segment_size=g.cluster.segment_size)
        for g in cluster.root_groups
    )
    return [Hosts(indexed_hosts(name, size), segment_size=cluster.segment_size), *groups]


def hostlist_of(parts: Iterable[Hosts]) -> str:
    """Return the hostlist of some parts of the table."""
    return ",".join(part.hostlist for part in parts)


def ranked(cluster: MiniClusterModel) -> Iterator[tuple[range, Hosts]]:
    """Yield the parts of the table with their ranks."""
    first = 0
    for part in table(cluster):
        ranks = range(first, first + count_hosts(part.hostlist))
        yield ranks, part
        first = ranks.stop


def registered(cluster: MiniClusterModel) -> int:
    """Return how many hosts the table has, with those of bursts."""
    return sum(len(ranks) for ranks, _ in ranked(cluster))


class Shape(NamedTuple):
    """What a job asks for: nodes (0: any), tasks (0: one for each node), and the cores of a task."""

    nodes: int
    tasks: int
    cores: int

    @property
    def cores_of_a_node(self) -> int:
        """The cores that each node must have."""
        tasks = self.tasks or self.nodes or 1
        return -(-tasks // (self.nodes or tasks)) * self.cores


def shape(words: Sequence[str]) -> Shape | None:
    """Return what the flags of a job ask for; None if one of them counts in a way that is not known here.

    >>> shape(["-N", "1", "-n4", "--cores-per-task=2"])
    Shape(nodes=1, tasks=4, cores=2)
    """
    counts = {"nodes": "0", "tasks": "0", "cores": "1"}
    for word, following in pairwise([*words, ""]):
        if word.partition("=")[0] in OTHERS:
            return None
        for key, names in COUNT_FLAGS.items():
            if word in names:
                counts[key] = following
            elif word.startswith(tuple(f"{name}=" for name in names[1:])):
                counts[key] = word.partition("=")[2]
            elif word.startswith(names[0]):
                counts[key] = word[2:]
    return (
        Shape(**{key: int(text) for key, text in counts.items()}) if all(map(str.isdecimal, counts.values())) else None
    )
