"""The requests of the waiting jobs, and why one is not met: what a job asks for, and what there is.

Programs of newer clients bring it along, or import it: its names stay. It imports the other programs of the pods where
it uses them, since these may be older. Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, NamedTuple

if TYPE_CHECKING:
    from need import Request
    from state import Nodes

#: Returns the ranks that the constraints (RFC 31) of a jobspec allow, as JSON; None if only the scheduler knows
Allowed = Callable[[Any, str], "frozenset[int] | None"]
#: Stands in a reason for a group of which no node is up; status/snapshot.py knows whether it has pods
NONE_UP = "the group {} has no node up"


def allowed_ranks(handle: Any, constraints: str) -> frozenset[int] | None:
    """Return the ranks that match constraints, None if Flux's Python can't tell. Raises OSError."""
    from flux.resource import ResourceSet

    resources = ResourceSet(handle.rpc("resource.status", nodeid=0).get()["R"])
    try:
        return frozenset(resources.copy_constraint(constraints).ranks)
    except ValueError:
        return None


class Pending:
    """The requests of the jobs that wait. Each jobspec is looked up once."""

    def __init__(self, handle: Any, allowed: Allowed = allowed_ranks) -> None:
        self.handle, self.allowed = handle, allowed
        self.known: dict[int, Request] = {}  #: by the id of a waiting job
        self.ranks: dict[str, frozenset[int] | None] = {}  #: by constraints

    def requests(self, waiting: list[dict[str, Any]], now: float) -> Iterator[Request]:
        """Yield the requests of the waiting jobs. Raises OSError."""
        from flux.job import job_kvs_lookup
        from need import parse_resources

        active = {job["id"] for job in waiting}
        self.known = {job: request for job, request in self.known.items() if job in active}
        for job in waiting:
            if job["id"] not in self.known:
                answer = job_kvs_lookup(self.handle, job["id"], keys=["jobspec"])
                if not answer:
                    continue
                jobspec = answer["jobspec"]
                request = replace(parse_resources(jobspec["resources"]), since=now, ranks=self._ranks(jobspec))
                self.known[job["id"]] = request
            yield self.known[job["id"]]

    def _ranks(self, jobspec: Mapping[str, Any]) -> frozenset[int] | None:
        """Return the ranks on which a job may run; None for all, or if only the scheduler knows."""
        constraints = jobspec.get("attributes", {}).get("system", {}).get("constraints")
        if not constraints:
            return None
        text = json.dumps(constraints, sort_keys=True)
        if text not in self.ranks:
            self.ranks[text] = self.allowed(self.handle, text)
        return self.ranks[text]


class Constraints(NamedTuple):
    """The constraints of a job."""

    asked: str  #: in words
    ranks: frozenset[int] | None  #: that they allow; None if only the scheduler knows
    properties: str  #: of all nodes, in words


def constraints_of(handle: Any, jobspec: Mapping[str, Any]) -> Constraints | None:
    """Return the constraints of a job, None for none. Raises OSError."""
    constraints = jobspec["attributes"]["system"].get("constraints")
    if not constraints:
        return None
    names = sorted(handle.rpc("resource.status", nodeid=0).get()["R"]["execution"].get("properties", {}))
    properties = f"the properties of nodes are {', '.join(names)}" if names else "no node has a property"
    ranks = allowed_ranks(handle, json.dumps(constraints, sort_keys=True))
    return Constraints(in_words(constraints), ranks, properties)


class Unmet:
    """A request beside the nodes that there are."""

    def __init__(
        self,
        request: Request,
        there: Nodes,
        constraints: Constraints | None = None,
        groups: Mapping[str, range] | None = None,
    ) -> None:
        """Take them; ``groups`` are the ranks of the groups by name."""
        self.request, self.there, self.constraints, self.groups = request, there, constraints, groups or {}
        ranks = constraints.ranks if constraints else None
        self.is_guess = bool(constraints) and ranks is None  #: only the scheduler knows which nodes it may have
        self._allowed = {rank: pair for rank, pair in there.all.items() if ranks is None or rank in ranks}
        self._able = {rank: pair for rank, pair in self._allowed.items() if _fits(request, pair)}
        self._up = {rank: self._able[rank] for rank in self._able.keys() & there.online if rank not in there.drained}

    def reason(self) -> tuple[str, bool]:
        """Return why a job waits for resources, and whether that is final: no node that comes or is freed can help."""
        from state import subtract

        request, there, allowed, able = self.request, self.there, self._allowed, self._able
        asks = f"it asks for {_number(request.chunks, 'node' if request.apart else 'slot')}"
        asks += f" of {_amount(request.cores, request.gpus)}"
        asks += f" with {self.constraints.asked}" if self.constraints else ""
        those = " of those" if self.constraints else ""
        if self.constraints and not allowed:
            return f"can never run: {asks}, and no node has that: {self.constraints.properties}", True
        if there.all and not able:
            return f"can never run: {asks}, and no node{those} has {_lacking(request, allowed)}", True
        if request.chunks > _count(request, able):
            return f"can never run: {asks}, and all nodes{those} have room for {_count(request, able)}", True
        if request.chunks > _count(request, self._up):
            return f"waits for nodes: {asks}, and {self._nodes_up()}", False
        free = {rank: subtract(pair, there.used.get(rank, (0, 0))) for rank, pair in self._up.items()}
        if request.exclusive:
            free = {rank: pair for rank, pair in free.items() if rank not in there.used}
        is_room = request.chunks <= _count(request, free)
        return ("waits for the scheduler" if is_room else "waits for resources that other jobs have"), False

    def sizes(self) -> dict[str, int]:
        """Return the least size of the cluster, "", or else of a group, that has nodes for it; {} if none is enough.

        It is {} too when its nodes are up, and when only the scheduler knows which it may have. This is for one job,
        as if no other ran; `queue_needs` has what the whole queue needs.
        """
        if self.is_guess or self.request.chunks <= _count(self.request, self._up):
            return {}
        first = min((part.start for part in self.groups.values()), default=max(self.there.all, default=-1) + 1)
        for name, part in {"": range(first), **self.groups}.items():
            room = _count(self.request, {rank: pair for rank, pair in self._up.items() if rank not in part})
            for rank in part:
                if rank in self._able and rank not in self.there.drained:
                    room += _fits(self.request, self._able[rank])
                if self.request.chunks <= room:
                    return {name: rank - part.start + 1}
        return {}

    def _nodes_up(self) -> str:
        """Return how many of the nodes that could run the job are up."""
        counted, drained = len(self._up), len(self._able.keys() & self.there.drained.keys())
        only = next((name for name, ranks in self.groups.items() if all(rank in ranks for rank in self._able)), "")
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
    return sum(_fits(request, pair) for pair in pairs.values())


def _fits(request: Request, pair: tuple[int, int]) -> int:
    """Return how many of a request's chunks fit on a node."""
    fits = [room // each for room, each in zip(pair, (request.cores, request.gpus)) if each]
    return min([*fits, 1]) if request.apart or not fits else min(fits)


def _lacking(request: Request, pairs: Mapping[int, tuple[int, int]]) -> str:
    """Return what no node has, of which each is too small for a chunk."""
    cores, gpus = (max(amounts) for amounts in zip(*pairs.values()))
    if request.gpus and not gpus:
        return "a GPU"
    is_apart = request.cores <= cores and request.gpus <= gpus
    return "both" if is_apart else f"more than {_amount(cores, gpus)}"


def _amount(cores: int, gpus: int) -> str:
    text = _number(cores, "core")
    return f"{text} and {_number(gpus, 'GPU')}" if gpus else text


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
