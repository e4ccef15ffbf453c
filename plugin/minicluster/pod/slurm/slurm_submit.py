"""sbatch, salloc and srun.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
import os
import sys
from typing import Any, Mapping, Sequence

from slurm_flux import open_flux, submit
from slurm_jobspec import STEP_VARIABLE, jobspec_of, urgency_of
from slurm_parse import SlurmError
from slurm_request import given_to, request_of
from slurm_wanted import Request
from slurm_words import array_of, stamp


def sbatch(words: Sequence[str]) -> int:
    """Submit a script, or an array of it. Raises SlurmError, OSError."""
    handle = open_flux()
    given, script = given_to("sbatch", words, os.environ)
    request = request_of(handle, "sbatch", given, script)
    if "test-only" in given.values:
        return test("sbatch", handle, request)
    jobs = submit_all(handle, request, os.environ)
    if "parsable" in given.values:
        print(jobs[0], flush=True)
    elif "quiet" not in given.values:
        print(f"Submitted batch job {jobs[0]}", flush=True)
    return max(code_of(handle, job) for job in jobs) if "wait" in given.values else 0


def test(command: str, handle: Any, request: Request) -> int:
    """Say when a job would start, and submit nothing. Raises SlurmError for one that would be refused; OSError."""
    # no other command needs these
    from ingest import ingested
    from need import parse_resources
    from start_times import estimate

    taken = ingested(handle, jobspec_of(request, os.environ, {}))
    if taken.refusal:
        raise SlurmError(f"allocation failure: {taken.refusal}")
    start = (estimate(handle, taken.jobspec) or {}).get(0)
    if start is None or math.isinf(start.at):
        print(f"{command}: nothing is submitted; the job would be taken, and wait", file=sys.stderr)
        return 0
    # Flux's default queue is in what it would take
    attributes = taken.jobspec["attributes"]
    partition = attributes["user"]["slurm"].get("partition") or attributes["system"].get("queue") or request.facts.name
    asked = parse_resources(taken.jobspec["resources"])
    what = f"{asked.chunks * asked.cores} processors in partition {partition}"
    print(f"{command}: Job 0 to start at {stamp(start.at)} using {what}", file=sys.stderr)
    return 0


def submit_all(handle: Any, request: Request, environment: Mapping[str, str]) -> list[int]:
    """Submit a job, or the tasks of an array, and return the ids; the first is the array's. Raises SlurmError."""
    urgency = urgency_of(request.given)
    if "array" not in request.given:
        return submit(handle, [jobspec_of(request, environment, {})], urgency)
    indices, limit = array_of(request.given["array"])
    step = indices[1] - indices[0] if indices[1:] else 1
    tasks = [
        {"index": index, "count": len(indices), "least": indices[0], "most": indices[-1], "step": step}
        for index in indices
    ]
    # its id is the array's
    jobs = submit(handle, [jobspec_of(request, environment, tasks[0])], urgency)
    while len(jobs) < len(tasks):
        at_once = tasks[len(jobs) : len(jobs) + (limit or len(tasks))]
        jobspecs = [jobspec_of(request, environment, {**task, "array": jobs[0]}) for task in at_once]
        for place, jobspec in enumerate(jobspecs, len(jobs)):
            if limit and place >= limit:
                _wait_for(jobspec, jobs[place - limit])
        jobs += submit(handle, jobspecs, urgency)
    return jobs


def _wait_for(jobspec: Mapping[str, Any], job: int) -> None:
    """Let a task wait for the one before: so there are never more of them; one that takes long holds one place."""
    system = jobspec["attributes"]["system"]
    before = {"scheme": "afterany", "value": str(job)}
    system["dependencies"] = [*system.get("dependencies", []), before]


def code_of(handle: Any, job: int) -> int:
    """Wait for a job's end and return its exit code, as Slurm has it. Raises OSError."""
    from flux.job import result

    outcome = result(handle, job)
    code = getattr(outcome, "returncode", None)
    if code in (None, ""):
        return 0 if outcome.result == "COMPLETED" else 1
    return int(code) if int(code) >= 0 else 128 - int(code)


def srun(words: Sequence[str]) -> int:
    """Run a command as a job, or in a job as a step of it. Raises SlurmError, OSError."""
    given, _ = given_to("srun", words, os.environ)
    if not given.words:
        raise SlurmError("fatal: No command given to execute.")
    if STEP_VARIABLE in os.environ:
        from slurm_step import run_step

        return run_step(given)
    handle = open_flux()
    request = request_of(handle, "srun", given)
    if "test-only" in given.values:
        return test("srun", handle, request)
    job = submit(handle, [jobspec_of(request, os.environ, {})], urgency_of(given.values))[0]
    attach(job, given.values)
    return 1


def salloc(words: Sequence[str]) -> int:
    """Run a command, or a shell, in an allocation. Raises SlurmError, OSError."""
    given, _ = given_to("salloc", words, os.environ)
    handle = open_flux()
    command = given.words or [os.environ.get("SHELL", "/bin/sh")]
    request = request_of(handle, "salloc", given._replace(words=command))
    if not given.words and "job-name" not in given.values:
        request = request._replace(given={**request.given, "job-name": "interactive"})
    jobspec = jobspec_of(request, os.environ, {})
    if sys.stdin.isatty():
        jobspec["attributes"]["system"]["shell"]["options"]["pty"] = {"interactive": 1}
    job = submit(handle, [jobspec], urgency_of(given.values))[0]
    if "quiet" not in given.values:
        print(f"salloc: Granted job allocation {job}", file=sys.stderr, flush=True)
    attach(job, given.values)
    return 1


def attach(job: int, values: Mapping[str, str]) -> None:
    """Become the program that shows a job's output and ends with its exit code."""
    words = ["flux-job", "attach", *(["--label-io"] if "label" in values else [])]
    words += ["--unbuffered"] if "unbuffered" in values else []
    path = os.environ.get("FLUX_EXEC_PATH", "")
    os.environ["PATH"] = ":".join(filter(None, [path, os.environ.get("PATH")]))
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvp(words[0], [*words, str(job)])  # noqa: S606 - no shell is needed
