"""Lets jobs choose nodes by zone=…, region=… and node=…, as they do by properties; for `flux.locations`.

Flux reads the properties of nodes once, before it is known where they run. So Flux's frobnicator, which sees each job
before the validator does (flux-config-ingest(5)), puts ranks in the place of locations. A pod may come back elsewhere
while the job waits: minicluster.lua looks at the locations again when the job starts.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import flux

# Flux imports this file by its path
sys.path.append(str(Path(__file__).parent))

import locations

#: Seconds for which the answers of the same brokers count: a thousand jobs at once don't ask a thousand times
PLACES_SECONDS = 1.0


class Frobnicator:
    """The plugin, by the name that Flux looks for, with the methods of its FrobnicatorPlugin."""

    def __init__(self, parser: Any) -> None:  # noqa: ARG002 - Flux gives it by name
        """Ask nothing yet: most jobs name no location."""
        self.handle: Any = None
        self.places: locations.Places = {}
        self.online, self.expires = "", 0.0

    def configure(self, args: Any, config: Any) -> None:
        """Take no options."""

    def frob(self, jobspec: Any, *_job: int) -> None:
        """Put ranks in the place of locations. Raises ValueError, which the user sees, and OSError."""
        constraints = jobspec.attributes["system"].get("constraints")
        if locations.has_locations(constraints):
            jobspec.setattr("system.constraints", locations.resolve(constraints, self._places()))

    def _places(self) -> locations.Places:
        self.handle = self.handle or flux.Flux()
        status = self.handle.rpc("resource.status", nodeid=0).get()
        if status["online"] != self.online or time.monotonic() >= self.expires:
            self.places = locations.ask(self.handle, status)
            self.online, self.expires = status["online"], time.monotonic() + PLACES_SECONDS
        return self.places
