"""What Flux would make of a job at its submission: the defaults and constraints that it gets, or why it is refused.

Programs of newer clients bring it along. Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
import os
from typing import Any, Mapping, NamedTuple


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

    config = handle.rpc("config.get").get().get("ingest") or {}
    frobnicator, parsed = JobFrobnicator(_words(config, "frobnicator")), Jobspec(**jobspec)
    frobnicator.start()
    try:
        frobnicator.frob(parsed, os.getuid(), FLUX_JOB_URGENCY_DEFAULT, 0)
    except (OSError, LookupError, TypeError, ValueError) as error:
        return Ingested(jobspec, str(error))
    validator = JobValidator(_words(config, "validator"))
    validator.start()
    try:
        job = {"jobspec": parsed.jobspec, "userid": os.getuid(), "flags": None, "urgency": FLUX_JOB_URGENCY_DEFAULT}
        answer = json.loads(str(validator.validate(job)))
    finally:
        validator.stop()
    return Ingested(parsed.jobspec, answer.get("errstr") or "refused" if answer["errnum"] else "")


def _words(config: Mapping[str, Any], kind: str) -> list[str]:
    """Return the words that choose and configure the plugins of a kind."""
    own = config.get(kind) or {}
    plugins = own.get("plugins") or []
    return [*([f"--plugins={','.join(plugins)}"] if plugins else []), *map(str, own.get("args") or [])]
