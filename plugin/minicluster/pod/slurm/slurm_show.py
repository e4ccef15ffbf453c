"""The part of scontrol that shows jobs, nodes, partitions and lists of hosts.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
import os
import time
from typing import Mapping, Sequence

from slurm_flux import all_jobs, chosen, cluster_name, ids_of, newest, open_flux
from slurm_jobs import ACTIVE, Job
from slurm_nodes import all_nodes, partitions
from slurm_options import VERSION
from slurm_parse import SlurmError
from slurm_squeue import as_json
from slurm_words import clock, long_clock, stamp


def show(options: Mapping[str, str], words: Sequence[str]) -> int:
    """Print what is asked for. Raises SlurmError, OSError."""
    what, words = (words[0].lower(), words[1:]) if words else ("", [])
    what, _, name = what.partition("=")
    words = [name, *words] if name else words
    if what in ("hostnames", "hostname", "hostlist", "hostlistsorted"):
        return _hosts(what, words)
    shows = {"jobs": _show_jobs, "nodes": _show_nodes, "partitions": _show_partitions, "config": _show_config}
    similar = [known for known in shows if what and known.startswith(what)]
    if not similar:
        raise SlurmError(
            f"invalid entity: {what or '(none)'} for keyword: show: there is {', '.join(shows)}, hostnames"
        )
    records = shows[similar[0]](options, words)
    for record in records:
        print(" ".join(record) if "oneliner" in options else "\n   ".join(record) + "\n")
    return 0


def _hosts(what: str, words: Sequence[str]) -> int:
    from flux.hostlist import Hostlist

    text = ",".join(words) or os.environ.get("SLURM_JOB_NODELIST", "")
    if not text:
        raise SlurmError("host list is empty")
    try:
        hosts = Hostlist(text)
    except (OSError, ValueError):
        raise SlurmError(f"Invalid hostlist: {text}") from None
    print(*(list(hosts) if what.startswith("hostname") else [str(hosts)]), sep="\n")
    return 0


def _show_jobs(options: Mapping[str, str], words: Sequence[str]) -> list[list[str]]:
    jobs = newest(all_jobs(open_flux()))
    if words:
        jobs = chosen(jobs, ids_of(words))
    if "json" in options:
        print(json.dumps({"jobs": [as_json(job) for job in jobs], "warnings": [], "errors": []}, indent=1))
        return []
    return [job_lines(job) for job in jobs]


def job_lines(job: Job) -> list[str]:
    """Return what `scontrol show job` prints of a job."""
    array = f" ArrayJobId={job.array[0]} ArrayTaskId={job.array[1]}" if job.array else ""
    limit = clock(job.limit) if job.limit else "UNLIMITED"
    end = job.ended if job.state not in ACTIVE else job.start + job.limit if job.start and job.limit else 0.0
    return [
        f"JobId={job.number}{array} JobName={job.name}",
        f"UserId={job.user} Priority={job.priority}",
        f"JobState={job.state} Reason={job.reason} Dependency={job.dependency or '(null)'}",
        f"ExitCode={job.code}:0 RunTime={long_clock(job.elapsed(time.time()))} TimeLimit={limit}",
        f"SubmitTime={stamp(job.submitted)} StartTime={stamp(job.start)} EndTime={stamp(end)}",
        f"Partition={job.partition}",
        f"NodeList={job.hosts or '(null)'}",
        f"NumNodes={job.nodes} NumCPUs={job.cpus} NumTasks={job.tasks}",
        f"WorkDir={job.directory}",
        f"Comment={job.comment}",
    ]


def _show_nodes(_: Mapping[str, str], words: Sequence[str]) -> list[list[str]]:
    from flux.hostlist import Hostlist

    known = all_nodes(open_flux())
    wanted = set(Hostlist(",".join(words))) if words else {node.host for node in known}
    missing = wanted - {node.host for node in known}
    if missing:
        raise SlurmError(f"Node {min(missing)} not of_names")
    return [
        [
            f"NodeName={node.host} CoresPerSocket={node.cpus}",
            f"CPUAlloc={node.used} CPUTot={node.cpus}",
            f"AvailableFeatures={','.join(node.features) or '(null)'}",
            f"Gres={f'gpu:{node.gpus}' if node.gpus else '(null)'}",
            f"State={node.state.upper()}",
            *([f"Reason={node.reason}"] if node.reason else []),
        ]
        for node in known
        if node.host in wanted
    ]


def _show_partitions(_: Mapping[str, str], words: Sequence[str]) -> list[list[str]]:
    from flux.hostlist import Hostlist

    handle = open_flux()
    of_names = partitions(handle, all_nodes(handle))
    missing = set(words) - {name for name, _ in of_names}
    if missing:
        raise SlurmError(f"Partition {min(missing)} not of_names")
    return [
        [
            f"PartitionName={name}",
            f"Default={'YES' if place == 0 else 'NO'} MaxTime=UNLIMITED DefaultTime=NONE State=UP",
            f"Nodes={Hostlist([node.host for node in of])}",
            f"TotalCPUs={sum(node.cpus for node in of)} TotalNodes={len(of)}",
        ]
        for place, (name, of) in enumerate(of_names)
        if not words or name in words
    ]


def _show_config(_: Mapping[str, str], _words: Sequence[str]) -> list[list[str]]:
    return [[f"ClusterName             = {cluster_name()}"], [f"SLURM_VERSION           = {VERSION}"]]
