"""sinfo: the nodes by partition and state.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Iterable, Mapping, Sequence

from slurm_flux import cluster_name, open_flux, own_memory
from slurm_format import Column, Field, by_letters, by_names, lines
from slurm_parse import SlurmError, read_words
from slurm_show import NODE_STATES, Group, Node, all_nodes, node_as_json, partitions
from slurm_squeue import print_as_json
from slurm_tables import OPTIONS_OF

SINFO_COLUMNS = "%#P %.5a %.10l %.6D %.6t %N"
SINFO_LONG = "%#P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
OF_NODES = "%#N %.6D %#P %6t"
REASONS = "%20E %9u %19H %N"


def _gres(group: Group) -> str:
    return f"gpu:{group.nodes[0].gpus}" if group.nodes[0].gpus else "(null)"


def _gres_used(group: Group) -> str:
    return f"gpu:{group.nodes[0].used_gpus}" if group.nodes[0].gpus else "(null)"


def _always(text: str) -> Callable[[Group], str]:
    """Return a column that has the same text for all nodes."""
    return lambda _: text


def _cluster(_: Group) -> str:
    return cluster_name()


def _memory(_: Group) -> str:
    return str(own_memory() >> 20)


#: Columns by the names of --Format, with the letter of --format
_FIELDS = (
    ("partition", "P", "PARTITION", lambda group: group.partition + "*" * group.is_default),
    ("partitionname", "R", "PARTITION", lambda group: group.partition),
    ("available", "a", "AVAIL", _always("up")),
    ("time", "l", "TIMELIMIT", _always("infinite")),
    ("defaulttime", "L", "DEFAULTTIME", _always("n/a")),
    ("nodes", "D", "NODES", lambda group: str(len(group.nodes))),
    ("statecompact", "t", "STATE", lambda group: NODE_STATES[group.nodes[0].state]),
    ("state", "T", "STATE", lambda group: group.nodes[0].state),
    ("statelong", "", "STATE", lambda group: group.nodes[0].state),
    ("nodelist", "N", "NODELIST", lambda group: group.hosts()),
    ("nodehost", "n", "HOSTNAMES", lambda group: group.nodes[0].host),
    ("nodeaddr", "o", "NODE_ADDR", lambda group: group.nodes[0].host),
    ("cpus", "c", "CPUS", lambda group: str(group.nodes[0].cpus)),
    ("cpusstate", "C", "CPUS(A/I/O/T)", lambda group: group.cpus()),
    ("nodeai", "A", "NODES(A/I)", lambda group: "/".join(_counts(group)[:2])),
    ("nodeaiot", "F", "NODES(A/I/O/T)", lambda group: "/".join(_counts(group))),
    ("features", "f", "AVAIL_FEATURES", lambda group: ",".join(group.nodes[0].features) or "(null)"),
    ("features_act", "b", "ACTIVE_FEATURES", lambda group: ",".join(group.nodes[0].features) or "(null)"),
    ("gres", "G", "GRES", _gres),
    ("gresused", "", "GRES_USED", _gres_used),
    ("memory", "m", "MEMORY", _memory),
    ("freemem", "e", "FREE_MEM", _always("N/A")),
    ("cpuload", "O", "CPU_LOAD", _always("N/A")),
    ("disk", "d", "TMP_DISK", _always("0")),
    ("weight", "w", "WEIGHT", _always("1")),
    ("sockets", "X", "SOCKETS", _always("1")),
    ("cores", "Y", "CORES", lambda group: str(group.nodes[0].cpus)),
    ("threads", "Z", "THREADS", _always("1")),
    ("socketcorethread", "z", "S:C:T", lambda group: f"1:{group.nodes[0].cpus}:1"),
    ("reason", "E", "REASON", lambda group: group.nodes[0].reason or "none"),
    ("user", "u", "USER", _always("Unknown")),
    ("timestamp", "H", "TIMESTAMP", _always("Unknown")),
    ("size", "s", "JOB_SIZE", _always("1-infinite")),
    ("root", "r", "ROOT", _always("no")),
    ("oversubscribe", "h", "OVERSUBS", _always("NO")),
    ("groups", "g", "GROUPS", _always("all")),
    ("cluster", "V", "CLUSTER", _cluster),
)
NODE_FIELDS: dict[str, Field] = {name: Field(header, -20, text) for name, _, header, text in _FIELDS}
NODE_LETTERS: Mapping[str, str] = {letter: name for name, letter, _, _ in _FIELDS if letter}
#: Columns of all nodes of a line: nodes that differ in the others have lines of their own
_OF_ALL = ("NODES", "NODELIST", "CPUS(A/I/O/T)", "NODES(A/I)", "NODES(A/I/O/T)")


def _counts(group: Group) -> list[str]:
    used, idle = group.count("allocated", "mixed", "draining"), group.count("idle")
    return [str(used), str(idle), str(len(group.nodes) - used - idle), str(len(group.nodes))]


def sinfo(words: Sequence[str]) -> int:
    """Print the nodes. Raises SlurmError, OSError."""
    options, rest = read_words(OPTIONS_OF["sinfo"], words)
    if rest:
        raise SlurmError(f"Unrecognized option: {rest[0]}")
    handle = open_flux()
    known = all_nodes(handle)
    chosen = [(name, _chosen(of, options)) for name, of in partitions(handle, known)]
    wanted = [name for name in options.get("partition", "").split(",") if name]
    chosen = [(name, of) for name, of in chosen if not wanted or name in wanted]
    if "json" in options:
        print_as_json("nodes", map(node_as_json, known))
        return 0
    columns = _columns(options)
    groups = list(_groups(columns, chosen, chosen[0][0] if chosen else "", "Node" in options))
    width = max([len("PARTITION"), *(len(group.partition) + 1 for group in groups)])
    hosts = max([len("NODELIST"), *(len(group.hosts()) for group in groups)])
    wide = {"%#P": f"%{width}P", "%#N": f"%{hosts}N"}
    columns = _columns(options, wide)
    for line in lines(columns, groups, "noheader" not in options):
        print(line)
    return 0


def _chosen(nodes: Iterable[Node], options: Mapping[str, str]) -> list[Node]:
    """Return the nodes that are asked for. Raises SlurmError."""
    from flux.hostlist import Hostlist

    hosts = set(Hostlist(options["nodes"])) if options.get("nodes") else set()
    long = {short: name for name, short in NODE_STATES.items()}
    states = {long.get(word, word) for word in options.get("states", "").lower().split(",") if word}
    unknown = states - set(NODE_STATES) - {"all"}
    if unknown:
        raise SlurmError(f'Bad state string: "{", ".join(sorted(unknown))}": there is {", ".join(NODE_STATES)}')
    return [
        node
        for node in nodes
        if (not hosts or node.host in hosts)
        and (not states or "all" in states or node.state in states)
        and ("dead" not in options or node.state == "down")
        and ("responding" not in options or node.state != "down")
        and ("list-reasons" not in options or node.reason)
    ]


def _columns(options: Mapping[str, str], wide: Mapping[str, str] = {}) -> list[Column]:
    if "Format" in options:
        return by_names(options["Format"], NODE_FIELDS, "--Format", ":")
    default = SINFO_COLUMNS
    for option, form in (("long", SINFO_LONG), ("Node", OF_NODES), ("list-reasons", REASONS)):
        default = form if option in options else default
    if "summarize" in options:
        default = "%#P %.5a %.10l %.16F %N"
    text = options.get("format", os.environ.get("SINFO_FORMAT", default))
    for short, long in wide.items():
        text = text.replace(short, long)
    return by_letters(text.replace("%#", "%") if not wide else text, NODE_LETTERS, NODE_FIELDS)


def _groups(
    columns: Sequence[Column], of_partitions: Iterable[tuple[str, list[Node]]], first: str, is_each: bool
) -> Iterable[Group]:
    """Yield the nodes of each line."""
    for name, members in of_partitions:
        parts: dict[Any, list[Node]] = {}
        for node in members:
            alone = Group(name, name == first, [node])
            fields = [c.field for c in columns if c.field]
            key = node.host if is_each else tuple(f.text(alone) for f in fields if f.header not in _OF_ALL)
            parts.setdefault(key, []).append(node)
        yield from (Group(name, name == first, part) for part in parts.values())
