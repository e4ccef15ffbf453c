"""scale.py SETTINGS [[GROUP=]SIZE|[GROUP=]auto]: requests at least SIZE nodes; ``auto`` withdraws the request.

With GROUP the nodes are of that group. Without a word it prints the requests. This is `minicluster-scale` in the
cluster's containers.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NoReturn

import flux
import flux.kvs
from autoscale import read_groups
from state import request_size, size_key


def fail(text: str) -> NoReturn:
    """End with one line."""
    sys.exit(f"minicluster-scale: {text}")


def main(file: str, words: list[str]) -> None:
    """Write the request where the autoscaler reads it, or print it."""
    settings = json.loads(Path(file).read_text(encoding="utf-8"))
    if not settings["policy"]:
        fail("the cluster has no autoscaler: set autoscaling.enabled at its install")
    if len(words) > 1:
        fail(f"{len(words)} sizes given: give one, or auto")
    policies = {group.name: group.limits for group in read_groups(settings)}
    handle = flux.Flux()
    if not words:
        for group in policies:
            print(f"{group}={_request(handle, group)}" if group else _request(handle, group))
        return
    group, _, word = words[0].rpartition("=")
    if group not in policies or words[0].startswith("="):
        fail(f"there is no group {group!r}: the groups are {', '.join([*policies][1:]) or '(none)'}")
    policy = policies[group]
    if word != "auto" and not (word.isdigit() and policy["min"] <= int(word) <= policy["max"]):
        fail(f"the size is {word!r}: give a number from {policy['min']} to {policy['max']}, or auto")
    request_size(handle, 0 if word == "auto" else int(word), group)


def _request(handle: flux.Flux, group: str) -> str:
    """Return the request, ``auto`` for none."""
    try:
        return str(flux.kvs.get(handle, size_key(group)) or "auto")
    except OSError:
        return "auto"


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
