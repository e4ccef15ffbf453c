"""scale.py SETTINGS [SIZE|auto]: requests at least SIZE nodes from the autoscaler; ``auto`` withdraws the request.

Without SIZE it prints the request. This is `minicluster-scale` in the cluster's containers.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NoReturn

import flux
import flux.kvs
from state import REQUESTED_SIZE, request_size


def fail(text: str) -> NoReturn:
    """End with one line."""
    sys.exit(f"minicluster-scale: {text}")


def main(file: str, words: list[str]) -> None:
    """Write the request where the autoscaler reads it, or print it."""
    policy = json.loads(Path(file).read_text(encoding="utf-8"))["policy"]
    if not policy:
        fail("the cluster has no autoscaler: set autoscaling.enabled at its install")
    if len(words) > 1:
        fail(f"{len(words)} sizes given: give one, or auto")
    handle = flux.Flux()
    if not words:
        try:
            print(flux.kvs.get(handle, REQUESTED_SIZE) or "auto")
        except OSError:
            print("auto")
        return
    word = words[0]
    if word != "auto" and not (word.isdigit() and policy["min"] <= int(word) <= policy["max"]):
        fail(f"the size is {word!r}: give a number from {policy['min']} to {policy['max']}, or auto")
    request_size(handle, 0 if word == "auto" else int(word))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
