"""What Flux would make of a job at its submission: the defaults and constraints that it gets, or why it is refused.

Programs of newer clients bring it along. Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
import math
import os
from typing import Any, Mapping, NamedTuple

from need import parse_resources


class Ingested(NamedTuple):
    """A job as Flux would take it."""

    jobspec: Mapping[str, Any]
    refusal: str  #: why Flux would not, "" if it would


def ingested(handle: Any, jobspec: Mapping[str, Any]) -> Ingested:
    """Return what the plugins of this Flux make of a jobspec (flux-config-ingest(5)). Raises OSError."""
    from flux.constants import FLUX_JOB_URGENCY_DEFAULT
    from flux.job import Jobspec
    from flux.job.frobnicator import JobFrobnicator
    from flux.job.validator import JobValidator

    whole = handle.rpc("config.get").get()
    config = whole.get("ingest") or {}
    frobnicator, parsed = JobFrobnicator(_words(config, "frobnicator")), Jobspec(**jobspec)
    frobnicator.start()
    try:
        frobnicator.frob(parsed, os.getuid(), FLUX_JOB_URGENCY_DEFAULT, 0)
    except (OSError, LookupError, TypeError, ValueError) as error:
        return Ingested(jobspec, str(error))
    if refusal := beyond_limit(whole, parsed.jobspec):
        return Ingested(parsed.jobspec, refusal)
    validator = JobValidator(_words(config, "validator"))
    validator.start()
    try:
        job = {"jobspec": parsed.jobspec, "userid": os.getuid(), "flags": None, "urgency": FLUX_JOB_URGENCY_DEFAULT}
        answer = json.loads(str(validator.validate(job)))
    finally:
        # flux-core before 0.69 has no function for it
        validator.executor.shutdown()
    return Ingested(parsed.jobspec, answer.get("errstr") or "refused" if answer["errnum"] else "")


def _words(config: Mapping[str, Any], kind: str) -> list[str]:
    """Return the words that choose and configure the plugins of a kind."""
    own = config.get(kind) or {}
    plugins = own.get("plugins") or []
    return [*([f"--plugins={','.join(plugins)}"] if plugins else []), *map(str, own.get("args") or [])]


def beyond_limit(config: Mapping[str, Any], jobspec: Mapping[str, Any]) -> str:
    """Return which limit of its queue a job would exceed (flux-config-policy(5)), "" for none."""
    from flux.util import parse_fsd

    system = jobspec["attributes"]["system"]
    queue = system.get("queue", "")
    of_queue = (config.get("queues") or {}).get(queue, {}).get("policy", {}).get("limits", {})
    limits = {**config.get("policy", {}).get("limits", {}), **of_queue}
    where = f" for queue {queue}" if queue else ""
    longest, duration = limits.get("duration"), system.get("duration") or math.inf
    if longest and duration > (parse_fsd(longest) if isinstance(longest, str) else longest):
        return f"its time limit exceeds the policy limit of {longest}{where}"
    asked = parse_resources(jobspec["resources"])
    sizes = {"nnodes": asked.chunks if asked.apart else 1}
    sizes.update(ncores=asked.chunks * asked.cores, ngpus=asked.chunks * asked.gpus)
    for name, most in limits.get("job-size", {}).get("max", {}).items():
        if 0 <= most < sizes.get(name, 0):
            return f"{name} is {sizes[name]}, and the policy limit {most}{where}"
    return ""
