"""would_fit.py OPTION…: whether a job with these options of `flux submit` would run, and when, as JSON.

``refused`` says why Flux would not take it, else "". ``waits``, ``needs``, ``grows``, ``starts`` and ``now`` are as
explain.py has them. Nothing is submitted.
Given to `flux python -c` by status/why.py of the client. Runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any, Mapping, Sequence

import flux
from ingest import ingested
from start_times import estimate
from waiting import autoscaled, queue_problem, unmet_of

#: Seconds for Flux to read the options
PARSE_SECONDS = 15


def jobspec_of(options: Sequence[str]) -> dict[str, Any]:
    """Return the jobspec of a job with some options. Raises ValueError with what is wrong with them."""
    flux_command = os.path.join(os.environ["MINICLUSTER_HOME"], "bin", "flux")  # noqa: PTH118 - a text
    words = [flux_command, "submit", "--dry-run", *options, "true"]
    # words, no shell
    done = subprocess.run(words, capture_output=True, check=False, timeout=PARSE_SECONDS)  # noqa: S603
    said = done.stderr.decode(errors="replace").strip().split("\n")
    if done.returncode:
        raise ValueError(said[-1].partition("error: ")[2] or said[-1])
    try:
        jobspec: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise ValueError("the options are of one job, without words of a command") from None
    if jobspec["tasks"][0]["command"] != ["true"]:
        raise ValueError("the options are of one job, without words of a command")
    return jobspec


def answer(handle: Any, submitted: Mapping[str, Any]) -> dict[str, Any]:
    """Return what would become of a job. Raises OSError."""
    from state import nodes

    jobspec, refusal = ingested(handle, submitted)
    told: dict[str, Any] = {
        "refused": refusal,
        "waits": "",
        "needs": {},
        "grows": {},
        "starts": None,
        "now": time.time(),
    }
    if refusal:
        return told
    unmet = unmet_of(handle, jobspec, nodes(handle))
    why, is_final = unmet.reason()
    if is_final:
        return {**told, "refused": why.replace("can never run: ", "")}
    queue = queue_problem(handle, jobspec["attributes"]["system"].get("queue", ""))
    told.update(waits=queue or why, needs=unmet.sizes(), grows=autoscaled())
    if not queue and not told["needs"] and not unmet.is_guess:
        starts = estimate(handle, jobspec)
        told["starts"] = starts[0].told() if starts else None
    return told


def main(options: Sequence[str]) -> dict[str, Any]:
    """Return what would become of a job with some options. Raises OSError."""
    try:
        return answer(flux.Flux(), jobspec_of(options))
    except ValueError as error:
        return {"error": str(error)}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
