"""sbatch, salloc and srun: from a command line, a script and variables to a request, and to jobs.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
import os
import re
import sys
from pathlib import Path
from typing import Any, Mapping, Sequence

from slurm_flux import all_jobs, chosen, facts_of, ids_of, open_flux, submit
from slurm_jobspec import STEP_VARIABLE, jobspec_of, urgency_of
from slurm_parse import SlurmError, Submission, check_script, read_submission
from slurm_wanted import Request, hosts_of, shape_of
from slurm_words import array_of, stamp

#: Says that the script is read from standard input, whatever its name: a client elsewhere has it
SCRIPT_VARIABLE = "MINICLUSTER_SLURM_SCRIPT"
#: Slurm's conditions, which are Flux's schemes too (RFC 26), but for one since Flux 0.85
_CONDITIONS = ("after", "afterany", "afterok", "afternotok")


def request_of(handle: Any, command: str, given: Submission, script: str = "") -> Request:
    """Return the request for what was given. Raises SlurmError, OSError."""
    facts = facts_of(handle)
    values = dict(given.values)
    hosts = count_hosts(hosts_of(values))
    if hosts and "nodes" in values and values["nodes"].isdigit() and int(values["nodes"]) > hosts:
        raise SlurmError(f"--nodes={values['nodes']}: --nodelist names {hosts}: name as many hosts, or none")
    layout = shape_of(values, facts, hosts)
    for line in [] if "quiet" in values else [*given.passed, *_changed(values)]:
        print(f"{command}: {line}", file=sys.stderr)
    depends = dependencies_of(handle, values.get("dependency", ""))
    return Request(command, values, given.words, script, layout, depends, facts)


def _changed(values: Mapping[str, str]) -> list[str]:
    """Return a line for what is not taken as it was given."""
    match = re.fullmatch(r"(\d+)-(\d+)", values.get("nodes", ""))
    return [f"--nodes={match[0]}: {match[1]} nodes, the least"] if match and match[1] != match[2] else []


def count_hosts(text: str) -> int:
    """Return how many hosts a hostlist has. Raises SlurmError."""
    if not text:
        return 0
    from flux.hostlist import Hostlist

    try:
        return len(Hostlist(text))
    except (OSError, ValueError):
        raise SlurmError(f"--nodelist={text}: Invalid node name specified") from None


def dependencies_of(handle: Any, text: str) -> list[dict[str, str]]:
    """Return the dependencies that --dependency names. Raises SlurmError."""
    dependencies: list[dict[str, str]] = []
    if "?" in text:
        raise SlurmError(f"--dependency={text}: Job dependency problem: Flux waits for all, so use commas")
    for part in filter(None, text.split(",")):
        condition, *ids = part.split(":")
        if condition == "singleton":
            dependencies.append({"scheme": "singleton", "value": ""})
            continue
        if condition not in _CONDITIONS or not ids:
            known = ", ".join([*_CONDITIONS, "singleton"])
            raise SlurmError(f"--dependency={text}: Job dependency problem: {condition}: there is {known}")
        if any("+" in each for each in ids):
            raise SlurmError(f"--dependency={text}: Job dependency problem: no minutes after a start: use --begin")
        jobs = chosen(all_jobs(handle), ids_of(ids))
        scheme = "afterstart" if condition == "after" and _version(handle) >= (0, 85) else condition
        dependencies += [{"scheme": scheme, "value": str(job.flux)} for job in jobs]
    return dependencies


def _version(handle: Any) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", handle.attr_get("version"))[:2]))


def read_script(words: Sequence[str]) -> tuple[str, str]:
    """Return text and name of the script that words name, or of standard input. Raises SlurmError."""
    if not words or SCRIPT_VARIABLE in os.environ:
        return check_script(sys.stdin.buffer.read()), words[0] if words else "standard input"
    path = Path(words[0])
    if "/" not in words[0] and not path.exists():
        # Slurm looks in PATH then
        files = (Path(folder) / words[0] for folder in os.environ.get("PATH", "").split(":"))
        path = next((file for file in files if file.is_file()), path)
    try:
        return check_script(path.read_bytes()), words[0]
    except OSError as error:
        raise SlurmError(f"Unable to open file {words[0]}: {error.strerror}, looked for in {Path.cwd()}") from None


def given_to(command: str, words: Sequence[str], environment: Mapping[str, str]) -> tuple[Submission, str]:
    """Return what is asked of a job, and its script. Raises SlurmError."""
    first = read_submission(command, words, environment)
    if command != "sbatch":
        return first, ""
    if "wrap" in first.values:
        if first.words:
            raise SlurmError("Script arguments not permitted with --wrap option")
        return first, f"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{first.values['wrap']}\n"
    script, name = read_script(first.words)
    given = read_submission(command, words, environment, script, name)
    if "job-name" not in given.values and first.words:
        given = given._replace(values={**given.values, "job-name": Path(first.words[0]).name})
    return given._replace(words=given.words[1:]), script


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
