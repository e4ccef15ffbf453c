"""What a job that runs has used until now: a program on each of its nodes says it (job_now.py).

A module of explain.py: runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from typing import Any, Mapping

from flux.job import job_kvs_lookup
from job_record import RANK_PREFIX, USAGE_KEY, annotation, usage
from state import by_rank, parse_idset

#: Of a job with more nodes it is not asked; seconds for their answers
ASKED_NODES, USED_SECONDS = 64, 10.0


def used_now(handle: Any, job: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a job has used, as its record will have it; None if no node says it."""
    ranks, home = job.get("ranks", ""), os.environ.get("MINICLUSTER_HOME", "")
    if not ranks or len(parse_idset(ranks)) > ASKED_NODES:
        return None
    flux, program = f"{home}/bin/flux", f"{home}/minicluster/job_now.py"
    words = [flux, "exec", "-q", "--label-io", "-r", ranks, flux, "python", program, str(job["id"])]
    try:
        done = subprocess.run(  # noqa: S603 - no shell
            words, capture_output=True, text=True, check=False, timeout=USED_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    had = by_rank((job_kvs_lookup(handle, job["id"], keys=["R"]) or {}).get("R"))
    told: dict[str, Any] = {}
    for line in filter(None, done.stdout.split("\n")):
        rank, _, text = line.partition(": ")
        with suppress(ValueError, KeyError):
            told[f"{RANK_PREFIX}{rank}"] = {**json.loads(text), "cores": had[int(rank)][0]}
    ended = annotation(job, "user", USAGE_KEY) or {}
    return usage({**job, "annotations": {"user": {USAGE_KEY: {**told, **ended}}}}) if told else None
