"""Lets jobs choose nodes by zone=…, region=… and node=…, as they do by properties; for `flux.locations`.

Flux reads the properties of nodes once, before it is known where they run. So Flux's frobnicator, which sees each job
before the validator does (flux-config-ingest(5)), puts ranks in the place of locations. A pod may come back elsewhere
while the job waits: minicluster.lua looks at the locations again when the job starts.
The locations of a node are its `zone`, its `region` and its `node`, which is the Kubernetes node.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping

import flux

# Flux imports this file by its path
sys.path.append(str(Path(__file__).parent))

from state import parse_idset, to_idset

#: Attribute of a broker with its locations, as `node=NAME zone=NAME region=NAME`. Since 0.82 Flux takes no attribute of
#: others unless its name begins with `vendor.`
ATTRIBUTE = "vendor.minicluster.locations"
#: A property that is a location, with ^ if it must not be that one
LOCATION = re.compile(r"(\^?)(zone|region|node)=(.+)")
#: Seconds in which the brokers must answer; one that doesn't is as a node that is down
BROKERS_SECONDS = 5.0
#: Seconds for which the answers of the same brokers count: a thousand jobs at once don't ask a thousand times
PLACES_SECONDS = 1.0
#: Most names in a message
MESSAGE_NAMES = 10

#: The locations of each rank in R: {rank: {"zone": "eu-1a"}}
Places = Mapping[int, Mapping[str, str]]


def ask(handle: Any, status: Mapping[str, Any]) -> Places:
    """Return the locations of all ranks: what the broker tells, and what R says of those whose broker is not up.

    ``status`` is the answer of resource.status.
    """
    execution = status["R"]["execution"]
    places: dict[int, dict[str, str]] = {
        rank: {} for entry in execution["R_lite"] for rank in parse_idset(entry["rank"])
    }
    for text, ranks in execution.get("properties", {}).items():
        if LOCATION.fullmatch(text):
            for rank in parse_idset(ranks):
                places[rank].update(_parse(text))
    online = [rank for rank in parse_idset(status["online"]) if rank in places]
    answers = {rank: handle.rpc("attr.get", {"name": ATTRIBUTE}, nodeid=rank) for rank in online}
    end = time.monotonic() + BROKERS_SECONDS
    for rank, answer in answers.items():
        places[rank].update(_answer(answer, max(0.0, end - time.monotonic())))
    return places


def _answer(answer: Any, seconds: float) -> dict[str, str]:
    """Return what a broker answers; nothing if it is just going, or is that of a machine outside Kubernetes."""
    try:
        answer.wait_for(seconds)
        return _parse(answer.get()["value"])
    except OSError:
        return {}


def _parse(text: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in text.split())


def has_locations(constraints: Any) -> bool:
    """Return whether constraints (RFC 31) name a location."""
    if isinstance(constraints, Mapping):
        return any(has_locations(each) for each in constraints.values())
    if isinstance(constraints, list):
        return any(has_locations(each) for each in constraints)
    return isinstance(constraints, str) and bool(LOCATION.fullmatch(constraints))


def resolve(constraints: Mapping[str, Any], places: Places, surely: bool = True) -> dict[str, Any]:
    """Return constraints (RFC 31) with ranks in place of locations: those of the nodes that are ``surely`` there.

    A node whose location isn't known is neither in it nor elsewhere. So below a `not` the ranks are those of the nodes
    that may be there.

    Raises ValueError where no node is in a location.
    """
    resolved: dict[str, Any] = {}
    for operator, values in constraints.items():
        if operator == "properties":
            parts = list(_properties(values, places, surely))
            resolved.update(parts[0] if len(parts) == 1 else {"and": parts})
        elif operator in ("and", "or", "not"):
            resolved[operator] = [resolve(each, places, surely != (operator == "not")) for each in values]
        else:
            resolved[operator] = values
    return resolved


def _properties(texts: Iterable[str], places: Places, surely: bool) -> Iterator[dict[str, Any]]:
    """Yield the constraints that take the place of some properties."""
    chosen = [(text, LOCATION.fullmatch(text)) for text in texts]
    rest = [text for text, location in chosen if not location]
    if rest or not chosen:
        yield {"properties": rest}
    for text, location in chosen:
        if location:
            negation, key, name = location.groups()
            _check(key, name, places)
            ranks = [
                rank
                for rank, own in places.items()
                if ((own[key] == name) != bool(negation) if key in own else not surely)
            ]
            if not ranks:
                raise ValueError(f"{text}: all nodes are there now")
            yield {"ranks": [to_idset(ranks)]}


def _check(key: str, name: str, places: Places) -> None:
    """Raise ValueError where no node is in a location."""
    counts = Counter(locations[key] for locations in places.values() if key in locations)
    if name in counts:
        return
    if not counts:
        raise ValueError(
            f"{key}={name}: no node knows its {key}: Kubernetes tells pods from 1.35 on, if the Kubernetes node has "
            f"the label topology.kubernetes.io/{key}"
        )
    names = [f"{known} ({count})" for known, count in sorted(counts.items())]
    more = f" and {len(names) - MESSAGE_NAMES} more" if len(names) > MESSAGE_NAMES else ""
    raise ValueError(f"{key}={name}: no node is there now: give one of {', '.join(names[:MESSAGE_NAMES])}{more}")


class Frobnicator:
    """The plugin, by the name that Flux looks for, with the methods of its FrobnicatorPlugin."""

    def __init__(self, parser: Any) -> None:  # noqa: ARG002 - Flux gives it by name
        """Ask nothing yet: most jobs name no location."""
        self.handle: Any = None
        self.places: Places = {}
        self.online, self.expires = "", 0.0

    def configure(self, args: Any, config: Any) -> None:
        """Take no options."""

    def frob(self, jobspec: Any, *_job: int) -> None:
        """Put ranks in the place of locations. Raises ValueError, which the user sees, and OSError."""
        constraints = jobspec.attributes["system"].get("constraints")
        if has_locations(constraints):
            jobspec.setattr("system.constraints", resolve(constraints, self._places()))

    def _places(self) -> Places:
        self.handle = self.handle or flux.Flux()
        status = self.handle.rpc("resource.status", nodeid=0).get()
        if status["online"] != self.online or time.monotonic() >= self.expires:
            self.places = ask(self.handle, status)
            self.online, self.expires = status["online"], time.monotonic() + PLACES_SECONDS
        return self.places
