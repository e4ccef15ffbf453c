"""The requests of the waiting jobs. Each jobspec is looked up once.

Programs of newer clients import it: its names stay. Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Callable, Iterator, Mapping

from need import Request, parse_resources

#: Returns the ranks that the constraints (RFC 31) of a jobspec allow, as JSON; None if only the scheduler knows
Allowed = Callable[[Any, str], "frozenset[int] | None"]


def allowed_ranks(handle: Any, constraints: str) -> frozenset[int] | None:
    """Return the ranks that match constraints, None if Flux's Python can't tell. Raises OSError."""
    from flux.resource import ResourceSet

    resources = ResourceSet(handle.rpc("resource.status", nodeid=0).get()["R"])
    try:
        return frozenset(resources.copy_constraint(constraints).ranks)
    except ValueError:
        return None


class Pending:
    """The requests of the jobs that wait."""

    def __init__(self, handle: Any, allowed: Allowed = allowed_ranks) -> None:
        self.handle, self.allowed = handle, allowed
        self.known: dict[int, Request] = {}  #: by the id of a waiting job
        self.ranks: dict[str, frozenset[int] | None] = {}  #: by constraints

    def requests(self, waiting: list[dict[str, Any]], now: float) -> Iterator[Request]:
        """Yield the requests of the waiting jobs. Raises OSError."""
        from flux.job import job_kvs_lookup

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
