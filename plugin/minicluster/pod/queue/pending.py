"""The requests of the waiting jobs. Each jobspec is looked up once.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Iterator, Mapping

from need import Request, parse_resources

#: Returns the ranks that the constraints of a jobspec (RFC 31) allow, None for all
Allowed = Callable[[Mapping[str, Any]], "frozenset[int] | None"]


class Pending:
    """The requests of the jobs that wait."""

    def __init__(self, handle: Any, allowed: Allowed = lambda _: None) -> None:
        """Take a handle of Flux; by default a job's constraints don't count."""
        self.handle, self.allowed = handle, allowed
        self.known: dict[int, Request] = {}  #: by the id of a waiting job

    def requests(self, waiting: list[dict[str, Any]], now: float) -> Iterator[Request]:
        """Yield the requests of the waiting jobs. Raises OSError."""
        from flux.job import job_kvs_lookup

        active = {job["id"] for job in waiting}
        self.known = {job: request for job, request in self.known.items() if job in active}
        for job in waiting:
            if job["id"] not in self.known:
                found = job_kvs_lookup(self.handle, job["id"], keys=["jobspec"])
                if not found:
                    continue
                jobspec = found["jobspec"]
                request = replace(parse_resources(jobspec["resources"]), since=now, ranks=self.allowed(jobspec))
                self.known[job["id"]] = request
            yield self.known[job["id"]]
