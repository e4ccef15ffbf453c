"""sacct: the jobs that have ended too, also those whose records Flux has given up (history.py).

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
import os
import re
import time
from itertools import chain
from typing import Any, Iterator, Mapping, Sequence

from flux.job import JobID
from history import History, folder
from inner_jobs import records_inside
from job_record import RESULT_NAMES, STATE_NAMES
from slurm_fields import SACCT_FIELDS
from slurm_flux import all_jobs, cluster_name, ids_of, newest, open_flux, user_name
from slurm_format import apart, by_names, lines, parsable
from slurm_jobs import Job, job_of
from slurm_parse import read_words
from slurm_squeue import as_json, print_as_json, select, states_of
from slurm_tables import OPTIONS_OF
from slurm_words import moment_of

SACCT_COLUMNS = "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode"
SACCT_BRIEF = "JobID,State,ExitCode"
SACCT_LONG = "JobID,JobName,Partition,AllocCPUS,Elapsed,State,ExitCode,NNodes,NodeList,Submit,Start,End,Timelimit"
#: Options that may be given several times
_LISTS = ("jobs", "name", "nodelist", "partition", "state", "uid", "user")
_STEP = re.compile(r"[^,]+\.\d+")
_INSIDE = re.compile(r"f\w+(?:/f\w+)+")
_RECORDED_STATES = {name: number for number, name in STATE_NAMES.items()}
_RECORDED_RESULTS = {name: number for number, name in RESULT_NAMES.items()}


def sacct(words: Sequence[str]) -> int:
    """Print the jobs. Raises SlurmError, OSError."""
    options, rest = read_words(OPTIONS_OF["sacct"], words, _LISTS)
    if rest and "jobs" not in options:
        options = {**options, "jobs": ",".join(rest)}
    if "helpformat" in options:
        print(*(field.header for field in SACCT_FIELDS.values()), sep="\n")
        return 0
    jobs = _jobs(open_flux(), options)
    if "json" in options:
        print_as_json("jobs", map(as_json, jobs))
        return 0
    default = SACCT_BRIEF if "brief" in options else SACCT_LONG if "long" in options else SACCT_COLUMNS
    columns = by_names(
        options.get("format") or os.environ.get("SACCT_FORMAT") or default, SACCT_FIELDS, "--format", "%"
    )
    header = "noheader" not in options
    if "parsable" in options or "parsable2" in options:
        between = options.get("delimiter", "|")
        table = list(parsable(columns, jobs, header, "parsable2" not in options, between))
    else:
        table = [f"{line} " for line in lines(apart(columns), jobs, header, "+")]
        if header:
            table.insert(1, "".join("-" * c.width if c.field else " " for c in apart(columns)) + " ")
    for line in table:
        print(line)
    return 0


def _jobs(handle: Any, options: Mapping[str, str]) -> list[Job]:
    jobs = all_jobs(handle)
    known = {job.flux for job in jobs}
    has_inner = "allocations" not in options
    earlier = [job for job in _earlier(handle, has_inner) if has_inner or not job.path]
    jobs = [job for job in earlier if not job.path and job.flux not in known] + jobs
    jobs = jobs if "duplicates" in options else newest(jobs)
    # those inside of a job come after it
    jobs += [job for job in earlier if job.path]
    jobs.sort(key=lambda job: (job.flux, bool(job.path), job.submitted))
    if options.get("jobs"):
        # nobody keeps records of steps, and Slurm prints nothing about an id that it doesn't know
        words = _STEP.sub("", options["jobs"])
        wanted, paths = ids_of([_INSIDE.sub("", words)]), _INSIDE.findall(words)
        jobs = [job for job in jobs if job.path in paths or any(one.has(job) for one in wanted)]
    now = time.time()
    states = states_of(options.get("state", ""))
    jobs = [job for job in jobs if not states or job.state in states]
    begin = moment_of(options.get("starttime", "now" if states else "today"), now, "--starttime")
    end = moment_of(options.get("endtime", "now"), now, "--endtime")
    if not options.get("jobs") or "starttime" in options:
        jobs = [job for job in jobs if (job.ended or now) >= begin and job.submitted <= end]
    users = options.get("uid", options.get("user", ""))
    if not users and "allusers" not in options and not options.get("jobs"):
        users = user_name(os.getuid())
    return select(jobs, {**options, "user": "" if "allusers" in options else users})


def _earlier(handle: Any, asks: bool) -> Iterator[Job]:
    """Yield the jobs of the records beside Flux's state, and with ``asks`` those inside of jobs that run."""
    for record in chain((json.loads(text) for _, text in History(folder())), records_inside(handle) if asks else ()):
        path = record["id"] if record["number"] is None else ""
        user = record.get("user") or {}
        entry = {
            **record,
            "id": record["number"] or int(JobID(path.split("/")[0])),
            "state": _RECORDED_STATES.get(record["state"], 64),
            "result": _RECORDED_RESULTS.get(record.get("result") or "", 0),
            "waitstatus": (record.get("exit_code") or 0) << 8,
            "nodelist": record.get("nodes"),
            # with its instance, of which no more is known than of a node
            **({"exception_occurred": True, "exception_type": "lost"} if record.get("result") == "LOST" else {}),
            "annotations": {"user": {"slurm": user.get("slurm") or {}}},
        }
        yield job_of(entry, user_name(os.getuid()), record.get("queue") or cluster_name())._replace(path=path)
