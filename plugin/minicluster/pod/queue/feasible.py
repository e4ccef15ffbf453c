"""Asks Flux's scheduler once whether the nodes can ever run a job, and not again for each job that asks for the same.

Flux's own plugin asks for each job, one after the other, which costs a tenth of the jobs a second. The answer depends
on what the job asks for, and on R, which has all hosts that may ever join.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, Mapping

# Flux imports this file by its path
sys.path.append(str(Path(__file__).parent))

import need
import pending
import state
from flux.job.validator.plugins import feasibility

#: Seconds for which answers count: an administrator may load another scheduler
ANSWERS_SECONDS = 10.0
#: What of `attributes.system` no scheduler reads (RFC 14); it may be long, and differ from job to job
IGNORED_ATTRIBUTES = frozenset(("cwd", "dependencies", "environment", "files", "job", "shell"))


class Validator(feasibility.Validator):  # type: ignore[misc] # Flux has no types
    """The plugin, by the name that Flux looks for: Flux's own, with a memory of the jobs that can run."""

    def __init__(self, parser: Any) -> None:
        super().__init__(parser)
        self.feasible: set[str] = set()
        self.expires = 0.0

    def validate(self, args: Any) -> tuple[int, str | None] | None:
        """Return an error number, or 0, and the reason, as Flux's own does."""
        if time.monotonic() >= self.expires:
            self.feasible.clear()
            self.expires = time.monotonic() + ANSWERS_SECONDS
        wanted = request(args.jobinfo["jobspec"])
        if wanted in self.feasible:
            return (0, None)
        answer: tuple[int, str | None] | None = super().validate(args)
        # Flux's own returns nothing where it finds nothing wrong
        if not answer or answer[0] == 0:
            self.feasible.add(wanted)
            return answer
        return answer[0], ": ".join(filter(None, (answer[1], why_never(self.flux_of(args), args.jobinfo["jobspec"]))))

    def flux_of(self, args: Any) -> Any:
        """Return the handle of Flux, which older versions give with each job."""
        return self.flux if hasattr(type(self), "flux") else args.flux


def why_never(handle: Any, jobspec: Mapping[str, Any]) -> str:
    """Return what a job that can never run asks for, and what there is; "" if only the scheduler knows."""
    try:
        asked, constraints = need.parse_resources(jobspec["resources"]), pending.constraints_of(handle, jobspec)
        why, is_final = pending.Unmet(asked, state.unused_nodes(handle), constraints).reason()
    except (OSError, LookupError, TypeError, ValueError):
        return ""  # its refusal counts, whatever fails here
    return why.replace("can never run: ", "") if is_final else ""


def request(jobspec: Mapping[str, Any]) -> str:
    """Return what a job asks its scheduler for, as a text that is the same for equal requests."""
    system = jobspec["attributes"]["system"]
    asked = {key: value for key, value in system.items() if key not in IGNORED_ATTRIBUTES}
    return json.dumps([jobspec["resources"], asked], sort_keys=True)
