"""From a command line to a request: reads words, script and variables, and asks Flux what the MiniCluster is like.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any, Mapping, Sequence

from slurm_flux import all_jobs, chosen, facts_of, ids_of
from slurm_parse import SlurmError, Submission, check_script, read_submission
from slurm_wanted import Request, hosts_of, shape_of

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
