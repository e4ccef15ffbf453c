"""What sbatch and srun say of a job that is not submitted: --test-only.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
import sys
from typing import Any, Mapping

from ingest import ingested
from need import parse_resources
from slurm_parse import SlurmError
from slurm_words import stamp
from start_times import estimate


def say_start(command: str, handle: Any, jobspec: Mapping[str, Any], name: str) -> None:
    """Print when a job would start; ``name`` is the partition of one that has no other.

    Raises SlurmError for one that would be refused; OSError.
    """
    taken = ingested(handle, jobspec)
    if taken.refusal:
        raise SlurmError(f"allocation failure: {taken.refusal}")
    start = (estimate(handle, taken.jobspec) or {}).get(0)
    if start is None or math.isinf(start.at):
        print(f"{command}: nothing is submitted; the job would be taken, and wait", file=sys.stderr)
        return
    # Flux's default queue is in what it would take
    attributes = taken.jobspec["attributes"]
    partition = attributes["user"]["slurm"].get("partition") or attributes["system"].get("queue") or name
    asked = parse_resources(taken.jobspec["resources"])
    what = f"{asked.chunks * asked.cores} processors in partition {partition}"
    print(f"{command}: Job 0 to start at {stamp(start.at)} using {what}", file=sys.stderr)
