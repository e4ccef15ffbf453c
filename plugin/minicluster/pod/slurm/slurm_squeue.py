"""squeue: the jobs that wait and run.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Iterable, Mapping, Sequence

from slurm_fields import SQUEUE_FIELDS, SQUEUE_LETTERS
from slurm_flux import all_jobs, chosen, ids_of, list_jobs, newest, open_flux, user_name
from slurm_format import Column, by_letters, by_names, lines
from slurm_jobs import ACTIVE, SLURM_STATES, Job
from slurm_parse import SlurmError, read_words
from slurm_tables import OPTIONS_OF

SQUEUE_COLUMNS = "%.20i %.9P %.8j %.8u %.2t %.10M %.6D %R"
SQUEUE_LONG = "%.20i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
SQUEUE_START = "%.20i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"


def squeue(words: Sequence[str]) -> int:
    """Print the jobs. Raises SlurmError, OSError."""
    options, rest = read_words(OPTIONS_OF["squeue"], words)
    # -j has an optional value: the word behind it is the ids
    if "jobs" in options and not options["jobs"] and rest:
        options = {**options, "jobs": rest[0]}
        rest = rest[1:]
    if rest:
        raise SlurmError(f"Unrecognized option: {rest[0]}")
    handle = open_flux()
    jobs = _jobs(handle, options)
    if "json" in options:
        print_as_json("jobs", map(as_json, jobs))
        return 0
    for line in lines(_columns(options), jobs, "noheader" not in options):
        print(line)
    return 0


def _jobs(handle: Any, options: Mapping[str, str]) -> list[Job]:
    states = states_of(options.get("states", ""))
    jobs = list_jobs(handle, "active")
    if any(state not in ACTIVE for state in states):
        jobs = newest(all_jobs(handle))
    wanted = ids_of([options["jobs"]]) if options.get("jobs") else []
    if wanted:
        try:
            jobs = chosen(jobs, wanted)
        except SlurmError:
            # one of several may have ended; Slurm knows ended jobs for a while
            known = chosen(newest(all_jobs(handle)), wanted) if not wanted[1:] else jobs
            jobs = [job for job in known if job in jobs and any(one.has(job) for one in wanted)]
    jobs = select(jobs, options)
    jobs = [job for job in jobs if job.state in (states or ACTIVE)]
    return _sorted(jobs, options.get("sort", ""))


def states_of(text: str) -> set[str]:
    """Return the states that a list names; `all` is all. Raises SlurmError."""
    long = {short: name for name, short in SLURM_STATES.items()}
    states = set()
    for word in filter(None, text.upper().split(",")):
        name = long.get(word, word)
        if name == "ALL":
            states |= set(SLURM_STATES)
        elif name in SLURM_STATES:
            states.add(name)
        else:
            raise SlurmError(f"Invalid job state specified: {word}: there is {', '.join(SLURM_STATES)}")
    return states


def select(jobs: Sequence[Job], options: Mapping[str, str]) -> list[Job]:
    """Return the jobs of the users, names, partitions and hosts that are asked for. Raises SlurmError."""
    users = set(options.get("user", options.get("users", "")).split(",")) - {""}
    if "me" in options:
        users.add(user_name(os.getuid()))
    users = {user_name(int(user)) if user.isdigit() else user for user in users}
    names = set(options.get("name", options.get("jobname", "")).split(",")) - {""}
    partitions = set(options.get("partition", "").split(",")) - {""}
    hosts = _hosts(options.get("nodelist", ""))
    return [
        job
        for job in jobs
        if (not users or job.user in users)
        and (not names or job.name in names)
        and (not partitions or job.partition in partitions)
        and (not hosts or hosts & _hosts(job.hosts))
    ]


def _hosts(text: str) -> set[str]:
    if not text:
        return set()
    from flux.hostlist import Hostlist

    try:
        return set(Hostlist(text))
    except (OSError, ValueError):
        raise SlurmError(f"Invalid node name specified: {text}") from None


def _columns(options: Mapping[str, str]) -> list[Column]:
    if "Format" in options or (os.environ.get("SQUEUE_FORMAT2") and "format" not in options):
        return by_names(options.get("Format", os.environ.get("SQUEUE_FORMAT2", "")), SQUEUE_FIELDS, "--Format", ":")
    default = SQUEUE_LONG if "long" in options else SQUEUE_START if "start" in options else SQUEUE_COLUMNS
    return by_letters(options.get("format", os.environ.get("SQUEUE_FORMAT", default)), SQUEUE_LETTERS, SQUEUE_FIELDS)


def _sorted(jobs: list[Job], text: str) -> list[Job]:
    """Return jobs in an order of letters; by default those that run come last, as in Slurm."""
    keys: dict[str, Callable[[Job], Any]] = {
        "i": lambda job: job.flux, "A": lambda job: job.flux, "p": lambda job: job.priority, "t": lambda job: job.state,
        "T": lambda job: job.state, "u": lambda job: job.user, "j": lambda job: job.name,
        "P": lambda job: job.partition,
        "S": lambda job: job.start, "V": lambda job: job.submitted, "M": lambda job: -job.started,
        "e": lambda job: job.ended, "Q": lambda job: job.priority, "D": lambda job: job.nodes,
    }  # fmt: skip
    for word in reversed([part for part in text.split(",") if part] or ["-p", "i"]):
        letter = word[-1]
        if letter not in keys:
            raise SlurmError(f"Invalid sort specification: {word}")
        jobs = sorted(jobs, key=keys[letter], reverse=word.startswith("-"))
    return jobs


def print_as_json(what: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Print rows in Slurm's form."""
    print(json.dumps({what: [*rows], "warnings": [], "errors": []}, indent=1))


def as_json(job: Job) -> dict[str, Any]:
    """Return a job with the keys of Slurm's JSON that programs read."""

    def number(value: int) -> dict[str, Any]:
        return {"set": True, "infinite": False, "number": value}

    return {
        "job_id": job.number,
        "array_job_id": number(job.array[0] if job.array else 0),
        "array_task_id": {**number(job.array[1] if job.array else 0), "set": bool(job.array)},
        "name": job.name,
        "user_name": job.user,
        "account": job.user,
        "partition": job.partition,
        "job_state": [job.state],
        "state_reason": job.reason,
        "nodes": job.hosts,
        "node_count": number(job.nodes),
        "cpus": number(job.cpus),
        "tasks": number(job.tasks),
        "submit_time": number(int(job.submitted)),
        "start_time": number(int(job.start)),
        "end_time": number(int(job.ended)),
        "time_limit": {"set": bool(job.limit), "infinite": not job.limit, "number": int(job.limit // 60)},
        "priority": number(job.priority),
        "current_working_directory": job.directory,
        "comment": job.comment,
        "dependency": job.dependency,
        "exit_code": {"return_code": number(job.code), "status": ["SUCCESS" if job.code == 0 else "ERROR"]},
    }
