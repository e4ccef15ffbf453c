"""The nodes of a MiniCluster in Slurm's words, and its partitions.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from slurm_flux import cluster_name, queues
from state import nodes, parse_idset

#: The short forms of the states of nodes
NODE_STATES = {
    "idle": "idle", "allocated": "alloc", "mixed": "mix", "drained": "drain", "draining": "drng", "down": "down",
}  # fmt: skip


class Node(NamedTuple):
    """A node."""

    host: str
    rank: int
    features: Sequence[str]
    cpus: int
    gpus: int
    used: int  #: of the CPUs
    used_gpus: int
    state: str
    reason: str


class Group(NamedTuple):
    """The nodes of a line."""

    partition: str
    is_default: bool
    nodes: Sequence[Node]

    def hosts(self) -> str:
        """Return the hosts as a list."""
        from flux.hostlist import Hostlist

        return str(Hostlist([node.host for node in self.nodes]))

    def count(self, *states: str) -> int:
        """Return how many nodes are in some states."""
        return sum(node.state in states for node in self.nodes)

    def cpus(self) -> str:
        """Return allocated/idle/other/total CPUs."""
        used = sum(node.used for node in self.nodes if node.state in ("allocated", "mixed", "draining"))
        other = sum(node.cpus - node.used for node in self.nodes if node.state in ("down", "drained", "draining"))
        total = sum(node.cpus for node in self.nodes)
        return f"{used}/{total - used - other}/{other}/{total}"


def all_nodes(handle: Any) -> list[Node]:
    """Return the nodes that may ever join, by rank. Raises OSError."""
    from flux.hostlist import Hostlist

    execution = handle.rpc("resource.status", nodeid=0).get()["R"]["execution"]
    state_of = nodes(handle)
    hosts = list(Hostlist(execution["nodelist"]))
    ranks = [rank for entry in execution["R_lite"] for rank in parse_idset(entry["rank"])]
    names = {name: set(parse_idset(idset)) for name, idset in (execution.get("properties") or {}).items()}
    result = []
    for host, rank in zip(hosts, sorted(ranks)):
        (cpus, gpus), (used, used_gpus) = state_of.all[rank], state_of.used.get(rank, (0, 0))
        state = "idle" if not used else "allocated" if used >= cpus else "mixed"
        if rank in state_of.drained:
            state = "draining" if used else "drained"
        if rank not in state_of.online:
            state = "down"
        features = sorted(name for name, members in names.items() if rank in members)
        reason = state_of.drained.get(rank, "")
        result.append(Node(host, rank, features, cpus, gpus, used, used_gpus, state, reason))
    return result


def partitions(handle: Any, known: Sequence[Node]) -> list[tuple[str, list[Node]]]:
    """Return the partitions with their nodes: Flux's queues, else all nodes; then the groups. Raises OSError."""
    config = handle.rpc("config.get").get().get("queues") or {}
    parts = []
    for name in queues(handle) or [cluster_name()]:
        needs = (config.get(name) or {}).get("requires") or []
        parts.append((name, [node for node in known if all(each in node.features for each in needs)]))
    groups = sorted({feature for node in known for feature in node.features if "=" not in feature})
    return parts + [(name, [node for node in known if name in node.features]) for name in groups if name not in config]


def as_json(node: Node) -> dict[str, Any]:
    """Return a node with the keys of Slurm's JSON that programs read."""
    return {
        "name": node.host,
        "hostname": node.host,
        "cpus": node.cpus,
        "alloc_cpus": node.used,
        "gres": f"gpu:{node.gpus}" if node.gpus else "",
        "state": [node.state.upper()],
        "reason": node.reason,
        "features": list(node.features),
    }
