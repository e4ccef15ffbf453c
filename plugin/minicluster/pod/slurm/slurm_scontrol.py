"""scontrol: shows jobs, nodes and partitions, and changes them. scancel: ends jobs.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from slurm_flux import all_jobs, chosen, ids_of, newest, open_flux
from slurm_jobs import ACTIVE, Job
from slurm_jobspec import URGENCIES
from slurm_options import VERSION
from slurm_parse import SlurmError, read_words
from slurm_show import all_nodes, show
from slurm_squeue import select, states_of
from slurm_tables import OPTIONS_OF
from slurm_words import clock, seconds_of, signal_number


def scontrol(words: Sequence[str]) -> int:
    """Run one of its commands. Raises SlurmError, OSError."""
    options, rest = read_words(OPTIONS_OF["scontrol"], words)
    name, words = (rest[0].lower(), rest[1:]) if rest else ("", [])
    commands: dict[str, Callable[[Mapping[str, str], Sequence[str]], int]] = {
        "show": show, "hold": _urgency("hold"), "uhold": _urgency("uhold"), "release": _urgency("release"),
        "top": _urgency("top"), "requeue": _requeue, "update": _update, "ping": _ping, "version": _version,
        "write": _batch_script,
    }  # fmt: skip
    similar = [known for known in commands if name and known.startswith(name)]
    if name not in commands and len(similar) != 1:
        raise SlurmError(f"invalid keyword: {name or '(none)'}: there is {', '.join(commands)}")
    return commands[name if name in commands else similar[0]](options, words)


def _urgency(word: str) -> Callable[[Mapping[str, str], Sequence[str]], int]:
    def change(_: Mapping[str, str], words: Sequence[str]) -> int:
        handle = open_flux()
        for job in _jobs(handle, words):
            if job.state == "PENDING":
                handle.rpc("job-manager.urgency", {"id": job.flux, "urgency": URGENCIES[word]}).get()
            else:
                raise SlurmError(f"{job.id}: Job is no longer pending execution")
        return 0

    return change


def _jobs(handle: Any, words: Sequence[str]) -> list[Job]:
    if not words:
        raise SlurmError("too few arguments: name a job")
    return chosen(newest(all_jobs(handle)), ids_of(words))


def _requeue(_: Mapping[str, str], words: Sequence[str]) -> int:
    from flux.job import cancel
    from requeue import resubmit

    handle = open_flux()
    for job in _jobs(handle, words):
        if job.state == "PENDING":
            raise SlurmError(f"{job.id}: Job is pending execution")
        resubmit(handle, {"id": job.flux, "urgency": 16}, {}, runs=job.state in ACTIVE)
        if job.state in ACTIVE:
            # the job's own script may have called this, and waits for the exit code
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            cancel(handle, job.flux, "by scontrol requeue")
    return 0


def _update(_: Mapping[str, str], words: Sequence[str]) -> int:
    pairs = {key.lower(): value for key, _, value in (word.partition("=") for word in words)}
    if "nodename" in pairs or "node" in pairs:
        return _update_node(pairs)
    text = pairs.pop("jobid", pairs.pop("job", ""))
    handle = open_flux()
    for job in _jobs(handle, [text] if text else []):
        for key, value in pairs.items():
            if key == "timelimit":
                _update_limit(handle, job, value)
            elif key == "priority" and value == "0":
                handle.rpc("job-manager.urgency", {"id": job.flux, "urgency": 0}).get()
            elif key in ("jobname", "name"):
                handle.rpc(
                    "job-manager.update", {"id": job.flux, "updates": {"attributes.system.job.name": value}}
                ).get()
            else:
                raise SlurmError(f"Update of this parameter is not supported: {key}={value}: submit the job again")
    return 0


def _update_limit(handle: Any, job: Job, value: str) -> None:
    sign = value[:1] if value[:1] in "+-" else ""
    seconds = seconds_of(value[len(sign) :], "TimeLimit")
    if sign and not job.limit:
        raise SlurmError(f"TimeLimit={value}: job {job.id} has no limit to change: give one, such as TimeLimit=10")
    new = job.limit + seconds if sign == "+" else job.limit - seconds if sign == "-" else seconds
    if sign == "-" and new <= 0:
        raise SlurmError(f"TimeLimit={value}: job {job.id} has {clock(job.limit)}")
    handle.rpc("job-manager.update", {"id": job.flux, "updates": {"attributes.system.duration": new}}).get()


def _update_node(pairs: Mapping[str, str]) -> int:
    from flux.hostlist import Hostlist
    from offers import undrain

    handle = open_flux()
    wanted = set(Hostlist(pairs.get("nodename", pairs.get("node", ""))))
    known = [node for node in all_nodes(handle) if node.host in wanted]
    if len(known) != len(wanted):
        raise SlurmError(f"Invalid node name specified: {', '.join(sorted(wanted - {node.host for node in known}))}")
    state = pairs.get("state", "").lower()
    ranks = [node.rank for node in known]
    if state in ("drain", "draining", "down"):
        if not pairs.get("reason"):
            raise SlurmError("You must specify a reason when DRAINING a node: reason=TEXT")
        targets = ",".join(map(str, ranks))
        handle.rpc(
            "resource.drain", {"targets": targets, "reason": pairs["reason"], "mode": "overwrite"}, nodeid=0
        ).get()
    elif state in ("resume", "undrain", "idle"):
        undrain(handle, ranks)
    else:
        raise SlurmError(f"Invalid node state specified: {state or '(none)'}: there is drain, resume")
    return 0


def _ping(_: Mapping[str, str], _words: Sequence[str]) -> int:
    open_flux()
    print(f"Slurmctld(primary) at {os.uname().nodename} is UP")
    return 0


def _version(_: Mapping[str, str], _words: Sequence[str]) -> int:
    print(f"slurm {VERSION}")
    return 0


def _batch_script(_: Mapping[str, str], words: Sequence[str]) -> int:
    from flux.job import job_kvs_lookup

    if words[:1] != ["batch_script"]:
        raise SlurmError("invalid keyword: write: there is batch_script")
    handle = open_flux()
    for job in _jobs(handle, words[1:2]):
        jobspec = (job_kvs_lookup(handle, job.flux, keys=["jobspec"]) or {}).get("jobspec") or {}
        files = jobspec.get("attributes", {}).get("system", {}).get("files") or {}
        text = (files.get("slurm_script") or {}).get("data", "")
        path = words[2] if words[2:] else f"slurm-{job.number}.sh"
        if path == "-":
            sys.stdout.write(text)
        else:
            Path(path).write_text(text, encoding="utf-8")
            print(f"batch script for job {job.number} written to {path}")
    return 0


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
    number = signal_number(text)
    if not number:
        raise SlurmError(f"--signal={text}: Unknown job signal: give such as USR1")
    return number
