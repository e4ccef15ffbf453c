"""Why a request for resources is not met: what a job asks for, and what there is.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Container, Iterable, Mapping, NamedTuple

if TYPE_CHECKING:
    from need import Request
    from state import Nodes

#: Stands in a reason for a group of which no node is up; live/lacking.py knows whether it has pods
NONE_UP = "the group {} has no node up"


class Constraints(NamedTuple):
    """The constraints of a job."""

    asked: str  #: in words
    ranks: frozenset[int] | None  #: that they allow; None if only the scheduler knows
    properties: str  #: of all nodes, in words


def constraints_of(handle: Any, jobspec: Mapping[str, Any]) -> Constraints | None:
    """Return the constraints of a job, None for none. Raises OSError."""
    found = jobspec["attributes"]["system"].get("constraints")
    if not found:
        return None
    names = sorted(handle.rpc("resource.status", nodeid=0).get()["R"]["execution"].get("properties", {}))
    properties = f"the properties of nodes are {', '.join(names)}" if names else "no node has a property"
    try:
        from pending import allowed_ranks
    except ImportError:  # the pods of v0.1.0
        return Constraints(in_words(found), None, properties)
    return Constraints(in_words(found), allowed_ranks(handle, json.dumps(found, sort_keys=True)), properties)


def of_request(
    request: Request,
    there: Nodes,
    constraints: Constraints | None = None,
    groups: Mapping[str, range] | None = None,
) -> tuple[str, bool]:
    """Return why a job waits for resources, and whether that is final: no node that comes or is freed can change it.

    ``groups`` are the ranks of the groups by name.
    """
    from state import subtract

    ranks = constraints.ranks if constraints else None
    allowed = {rank: pair for rank, pair in there.all.items() if ranks is None or rank in ranks}
    able = {rank: pair for rank, pair in allowed.items() if _count(request, {rank: pair})}
    asks = f"it asks for {_number(request.chunks, 'node' if request.apart else 'slot')}"
    asks += f" of {_amount(request.cores, request.gpus)}" + (f" with {constraints.asked}" if constraints else "")
    those = " of those" if constraints else ""
    if constraints and not allowed:
        return f"can never run: {asks}, and no node has that: {constraints.properties}", True
    if there.all and not able:
        most = _amount(max(cores for cores, _ in allowed.values()), max(gpus for _, gpus in allowed.values()))
        return f"can never run: {asks}, and no node{those} has more than {most}", True
    if request.chunks > _count(request, able):
        return f"can never run: {asks}, and all nodes{those} have room for {_count(request, able)}", True
    up = {rank: pair for rank, pair in able.items() if rank in there.online and rank not in there.drained}
    if request.chunks > _count(request, up):
        return f"waits for nodes: {asks}, and {_up(up, able, there, groups or {})}", False
    free = {rank: subtract(pair, there.used.get(rank, (0, 0))) for rank, pair in up.items()}
    if request.exclusive:
        free = {rank: pair for rank, pair in free.items() if rank not in there.used}
    is_room = request.chunks <= _count(request, free)
    return ("waits for the scheduler" if is_room else "waits for resources that other jobs have"), False


def nodes_wanted(
    request: Request, there: Nodes, constraints: Constraints | None, groups: Mapping[str, range]
) -> dict[str, int]:
    """Return the least size of the cluster, "", or else of a group, that has nodes for a request; {} if none is enough.

    It is {} too for a request whose nodes are up, or whose constraints only the scheduler knows.
    """
    ranks = constraints.ranks if constraints else None
    allowed = {} if constraints and ranks is None else there.all
    able = {rank: pair for rank, pair in allowed.items() if ranks is None or rank in ranks}
    up = {rank for rank in able if rank in there.online and rank not in there.drained}
    if request.chunks <= _count(request, {rank: able[rank] for rank in up}):
        return {}
    first = min((part.start for part in groups.values()), default=max(there.all, default=-1) + 1)
    for name, part in {"": range(first), **groups}.items():
        used = {rank: able[rank] for rank in up if rank not in part}
        for rank in part:
            if rank in able and rank not in there.drained:
                used[rank] = able[rank]
            if request.chunks <= _count(request, used):
                return {name: rank - part.start + 1}
    return {}


def _up(up: Container[int], able: Iterable[int], there: Nodes, groups: Mapping[str, range]) -> str:
    """Return how many of the nodes that could run a job are up."""
    counted, drained = sum(rank in up for rank in able), sum(rank in there.drained for rank in able)
    only = next((name for name, ranks in groups.items() if all(rank in ranks for rank in able)), "")
    if only and not counted and not drained:
        return NONE_UP.format(only)
    return f"{counted} {'is' if counted == 1 else 'are'} up" + (f", {drained} drained" if drained else "")


def in_words(constraints: Mapping[str, Any]) -> str:
    """Return constraints (RFC 31) in words; those of nested operators as JSON."""
    if len(constraints) == 1:
        [(operator, values)] = constraints.items()
        if operator == "properties":
            return " and ".join(map(str, values))
        if operator == "hostlist":
            return "host " + ",".join(map(str, values))
        if operator == "ranks":
            return "rank " + ",".join(map(str, values))
    return json.dumps(constraints, sort_keys=True)


def _count(request: Request, pairs: Mapping[int, tuple[int, int]]) -> int:
    """Return how many of a request's chunks fit on some nodes, by the cores and GPUs of each."""
    total = 0
    for pair in pairs.values():
        fits = [room // each for room, each in zip(pair, (request.cores, request.gpus)) if each]
        total += min([*fits, 1]) if request.apart or not fits else min(fits)
    return total


def _amount(cores: int, gpus: int) -> str:
    text = _number(cores, "core")
    return f"{text} and {_number(gpus, 'GPU')}" if gpus else text


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
