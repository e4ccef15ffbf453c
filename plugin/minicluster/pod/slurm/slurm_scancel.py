"""scancel: ends jobs, or sends them a signal.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import signal
import sys
from typing import Sequence

from slurm_flux import all_jobs, ids_of, newest, open_flux
from slurm_jobs import ACTIVE
from slurm_parse import SlurmError, read_words
from slurm_squeue import select, states_of
from slurm_tables import OPTIONS_OF

_CHOICES = ("user", "me", "name", "jobname", "partition", "state", "nodelist")


def scancel(words: Sequence[str]) -> int:
    """End jobs. Raises SlurmError, OSError."""
    options, rest = read_words(OPTIONS_OF["scancel"], words)
    if not rest and not any(choice in options for choice in _CHOICES):
        raise SlurmError("No job identification provided")
    handle = open_flux()
    known = newest(all_jobs(handle))
    wanted = ids_of(rest)
    code = 0
    for text, one in zip(rest, wanted) if len(wanted) == len(rest) else ((str(w.number), w) for w in wanted):
        if not any(one.has(job) for job in known):
            print(f"scancel: error: Kill job error on job id {text}: Invalid job id specified", file=sys.stderr)
            code = 1
    jobs = [job for job in known if job.state in ACTIVE and (not wanted or any(one.has(job) for one in wanted))]
    states = states_of(options.get("state", ""))
    number = _signal(options["signal"]) if "signal" in options else 0
    for job in select(jobs, options):
        if states and job.state not in states:
            continue
        _end(handle, job.flux, number)
    return code


def _end(handle: object, job: int, number: int) -> None:
    """End a job, or send it a signal. Raises OSError, but not for a job that has just ended."""
    from flux.job import cancel, kill

    try:
        if number and number not in (signal.SIGKILL, signal.SIGTERM):
            kill(handle, job, number)
        else:
            cancel(handle, job, "by scancel")
    except OSError as error:
        if "inactive" not in str(error):
            raise


def _signal(text: str) -> int:
    names = {each.name[3:]: int(each) for each in signal.Signals}
    number = int(text) if text.isdigit() else names.get(text.upper().replace("SIG", "", 1), 0)
    if not number:
        raise SlurmError(f"--signal={text}: Unknown job signal: give such as USR1")
    return number
