"""The part of scontrol that shows jobs, nodes, partitions and lists of hosts; the nodes and partitions for sinfo, too.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
import time
from typing import Any, Mapping, NamedTuple, Sequence

from slurm_flux import all_jobs, chosen, cluster_name, ids_of, newest, open_flux, queues
from slurm_jobs import ACTIVE, Job
from slurm_options import VERSION
from slurm_parse import SlurmError
from slurm_squeue import as_json, print_as_json
from slurm_words import clock, long_clock, stamp
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


def node_as_json(node: Node) -> dict[str, Any]:
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


def show(options: Mapping[str, str], words: Sequence[str]) -> int:
    """Print what is asked for. Raises SlurmError, OSError."""
    what, words = (words[0].lower(), words[1:]) if words else ("", [])
    what, _, name = what.partition("=")
    words = [name, *words] if name else words
    if what in ("hostnames", "hostname", "hostlist", "hostlistsorted"):
        return _hosts(what, words)
    shows = {"jobs": _show_jobs, "nodes": _show_nodes, "partitions": _show_partitions, "config": _show_config}
    similar = [known for known in shows if what and known.startswith(what)]
    if not similar:
        raise SlurmError(
            f"invalid entity: {what or '(none)'} for keyword: show: there is {', '.join(shows)}, hostnames"
        )
    records = shows[similar[0]](options, words)
    for record in records:
        print(" ".join(record) if "oneliner" in options else "\n   ".join(record) + "\n")
    return 0


def _hosts(what: str, words: Sequence[str]) -> int:
    from flux.hostlist import Hostlist

    text = ",".join(words) or os.environ.get("SLURM_JOB_NODELIST", "")
    if not text:
        raise SlurmError("host list is empty")
    try:
        hosts = Hostlist(text)
    except (OSError, ValueError):
        raise SlurmError(f"Invalid hostlist: {text}") from None
    print(*(list(hosts) if what.startswith("hostname") else [str(hosts)]), sep="\n")
    return 0


def _show_jobs(options: Mapping[str, str], words: Sequence[str]) -> list[list[str]]:
    jobs = newest(all_jobs(open_flux()))
    if words:
        jobs = chosen(jobs, ids_of(words))
    if "json" in options:
        print_as_json("jobs", map(as_json, jobs))
        return []
    return [job_lines(job) for job in jobs]


def job_lines(job: Job) -> list[str]:
    """Return what `scontrol show job` prints of a job."""
    array = f" ArrayJobId={job.array[0]} ArrayTaskId={job.array[1]}" if job.array else ""
    limit = clock(job.limit) if job.limit else "UNLIMITED"
    end = job.ended if job.state not in ACTIVE else job.start + job.limit if job.start and job.limit else 0.0
    return [
        f"JobId={job.number}{array} JobName={job.name}",
        f"UserId={job.user} Priority={job.priority}",
        f"JobState={job.state} Reason={job.reason} Dependency={job.dependency or '(null)'}",
        f"ExitCode={job.code}:0 RunTime={long_clock(job.elapsed(time.time()))} TimeLimit={limit}",
        f"SubmitTime={stamp(job.submitted)} StartTime={stamp(job.start)} EndTime={stamp(end)}",
        f"Partition={job.partition}",
        f"NodeList={job.hosts or '(null)'}",
        f"NumNodes={job.nodes} NumCPUs={job.cpus} NumTasks={job.tasks}",
        f"WorkDir={job.directory}",
        f"Comment={job.comment}",
    ]


def _show_nodes(_: Mapping[str, str], words: Sequence[str]) -> list[list[str]]:
    from flux.hostlist import Hostlist

    known = all_nodes(open_flux())
    wanted = set(Hostlist(",".join(words))) if words else {node.host for node in known}
    missing = wanted - {node.host for node in known}
    if missing:
        raise SlurmError(f"Node {min(missing)} not of_names")
    return [
        [
            f"NodeName={node.host} CoresPerSocket={node.cpus}",
            f"CPUAlloc={node.used} CPUTot={node.cpus}",
            f"AvailableFeatures={','.join(node.features) or '(null)'}",
            f"Gres={f'gpu:{node.gpus}' if node.gpus else '(null)'}",
            f"State={node.state.upper()}",
            *([f"Reason={node.reason}"] if node.reason else []),
        ]
        for node in known
        if node.host in wanted
    ]


def _show_partitions(_: Mapping[str, str], words: Sequence[str]) -> list[list[str]]:
    from flux.hostlist import Hostlist

    handle = open_flux()
    of_names = partitions(handle, all_nodes(handle))
    missing = set(words) - {name for name, _ in of_names}
    if missing:
        raise SlurmError(f"Partition {min(missing)} not of_names")
    return [
        [
            f"PartitionName={name}",
            f"Default={'YES' if place == 0 else 'NO'} MaxTime=UNLIMITED DefaultTime=NONE State=UP",
            f"Nodes={Hostlist([node.host for node in of])}",
            f"TotalCPUs={sum(node.cpus for node in of)} TotalNodes={len(of)}",
        ]
        for place, (name, of) in enumerate(of_names)
        if not words or name in words
    ]


def _show_config(_: Mapping[str, str], _words: Sequence[str]) -> list[list[str]]:
    return [[f"ClusterName             = {cluster_name()}"], [f"SLURM_VERSION           = {VERSION}"]]
