"""What the commands of Slurm ask of Flux: the nodes, the jobs, and to submit one.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import errno
import json
import os
import pwd
import socket
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, Iterable, Mapping, Sequence

import flux
from slurm_jobs import LISTED, Job, JobChoice, job_of, wanted_of, with_reasons
from slurm_parse import SlurmError
from slurm_wanted import Facts
from state import parse_idset

#: Files of a container's memory limit (cgroups(7)), and of the machine
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
#: What of a job's attributes the commands show
SHOWN = ("array", "index", "partition", "comment", "tasks")
#: Properties that resources.sh makes of where a node is
_LOCATION = "="


def open_flux() -> Any:
    """Connect to the instance of FLUX_URI. Raises SlurmError."""
    try:
        return flux.Flux()
    except OSError as error:
        raise SlurmError(f"Unable to contact slurm controller: {error}: Flux does not run here") from None


def queues(handle: Any) -> list[str]:
    """Return the names of Flux's queues. Raises OSError."""
    return sorted(handle.rpc("config.get").get().get("queues") or {})


def facts_of(handle: Any) -> Facts:
    """Return what the MiniCluster is like. Raises OSError."""
    execution = handle.rpc("resource.status", nodeid=0).get()["R"]["execution"]
    properties = sorted(name for name in execution.get("properties") or {} if _LOCATION not in name)
    cores = [len(parse_idset(entry["children"].get("core", ""))) for entry in execution["R_lite"]]
    return Facts(
        name=cluster_name(),
        queues=queues(handle),
        properties=properties,
        cores=min(cores, default=1),
        memory=0 if properties else own_memory(),
        now=time.time(),
        host=socket.gethostname(),
        directory=_directory(),
        user=user_name(os.getuid()),
    )


def _directory() -> str:
    """Return the working directory by the name that the user's shell has for it."""
    shown = os.environ.get("PWD", "")
    try:
        if shown.startswith("/") and Path(shown).samefile("."):
            return shown
    except OSError:
        pass
    return str(Path.cwd())


def cluster_name() -> str:
    """Return the name of the MiniCluster, which is the partition of nodes without a group."""
    return os.environ.get("MINICLUSTER_SLURM_NAME") or "minicluster"


def own_memory() -> int:
    """Return the bytes that this container may have; 0 if that isn't known."""
    for name in _LIMITS:
        try:
            text = Path(name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        # version 1 has a number that is larger than any memory
        if text.isdigit() and int(text) < 1 << 60:
            return int(text)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return 0


@lru_cache(maxsize=None)
def user_name(uid: int) -> str:
    """Return a user's name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return os.environ.get("USER", str(uid)) if uid == os.getuid() else str(uid)


def list_jobs(handle: Any, states: str) -> list[Job]:
    """Return the jobs that are `active` or `inactive`, ordered by id."""
    from flux.job import JobList

    query = JobList(handle, attrs=LISTED, filters=[states], user="all", max_entries=0)
    partition = (queues(handle) or [cluster_name()])[0]
    entries = sorted(query.fetch_jobs().get_jobs(), key=lambda entry: entry["id"])
    return with_reasons([job_of(entry, user_name(entry["userid"]), partition) for entry in entries])


def all_jobs(handle: Any) -> list[Job]:
    """Return all jobs that Flux knows. One that goes on as another job is left out."""
    active = list_jobs(handle, "active")
    known = {job.flux for job in active}
    return sorted(
        [job for job in list_jobs(handle, "inactive") if job.flux not in known] + active, key=lambda job: job.flux
    )


def newest(jobs: Iterable[Job]) -> list[Job]:
    """Return jobs without those that run again under the same id."""
    by_id: dict[Any, Job] = {}
    for job in jobs:
        by_id[job.id] = job
    return list(by_id.values())


def ids_of(words: Iterable[str]) -> list[JobChoice]:
    """Return the ids in lists with commas. Raises SlurmError."""
    return [_id_of(word) for text in words for word in _parts(text) if word]


def _id_of(word: str) -> JobChoice:
    try:
        return wanted_of(word, _decode)
    except ValueError:
        raise SlurmError(f"Invalid job id specified: {word}") from None


def _parts(text: str) -> Sequence[str]:
    """Return the parts of a list with commas, which also stand in brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _decode(text: str) -> int:
    from flux.job import JobID

    return int(JobID(text))


def chosen(jobs: Sequence[Job], wanted: Sequence[JobChoice]) -> list[Job]:
    """Return the jobs that are meant. Raises SlurmError for an id that no job has."""
    jobs_meant = []
    for one in wanted:
        meant = [job for job in jobs if one.has(job)]
        if not meant:
            raise SlurmError("Invalid job id specified")
        jobs_meant += [job for job in meant if job not in jobs_meant]
    return jobs_meant


def submit(handle: Any, jobspecs: Sequence[Mapping[str, Any]], urgency: int) -> list[int]:
    """Submit jobs at once and return their ids. What squeue shows of each is a memo. Raises SlurmError."""
    from flux.job import submit_async

    try:
        futures = [submit_async(handle, json.dumps(jobspec), urgency) for jobspec in jobspecs]
        jobs = [int(future.get_id()) for future in futures]
    except OSError as error:
        raise SlurmError(f"Batch job submission failed: {error.strerror or error}") from None
    _note(handle, zip(jobs, (jobspec["attributes"]["user"]["slurm"] for jobspec in jobspecs)))
    return jobs


def _note(handle: Any, jobs: Iterable[tuple[int, Mapping[str, Any]]]) -> None:
    """Note jobs' attributes where Flux lists them. Raises OSError."""
    asked = []
    for job, own in jobs:
        shown = {key: own[key] for key in SHOWN if key in own}
        asked.append(handle.rpc("job-manager.memo", {"id": job, "volatile": False, "memo": {"slurm": shown}}))
    for answer in asked:
        try:
            answer.get()
        except OSError as error:  # noqa: PERF203 - each may fail
            # a short job may have ended
            if error.errno not in (errno.ENOENT, errno.EINVAL):
                raise
