"""From what was asked in Slurm's words to a jobspec of Flux (RFC 14, 25, 26, 31), with the variables of the job.

slurm.lua sets the variables of the nodes and tasks that the job gets.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
import re
from typing import Any, Mapping

from slurm_layout import of_instance, of_tasks
from slurm_parse import SlurmError
from slurm_wanted import Request, constraints_of, is_appended, shell_options, signal_of
from slurm_words import bytes_of, gpus_of, moment_of, seconds_of

#: Tells srun in a job how its steps run (slurm_step.py)
STEP_VARIABLE = "MINICLUSTER_SLURM_STEP"
#: What a job keeps with --export=NONE: what it needs to run here, and what a login would give it
KEPT = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")
KEPT_PREFIXES = ("MINICLUSTER_", "FLUX_")
#: Variables for options, as sbatch and srun set them
_SAME: Mapping[str, str] = {
    "SLURM_CPUS_PER_TASK": "cpus-per-task",
    "SLURM_DISTRIBUTION": "distribution",
    "SLURM_JOB_DEPENDENCY": "dependency",
    "SLURM_NTASKS_PER_NODE": "ntasks-per-node",
    "SLURM_CPUS_PER_GPU": "cpus-per-gpu",
    "SLURM_OPEN_MODE": "open-mode",
}
_GPUS: Mapping[str, str] = {
    "SLURM_GPUS": "gpus",
    "SLURM_GPUS_PER_NODE": "gpus-per-node",
    "SLURM_GPUS_PER_TASK": "gpus-per-task",
}
_OF_MEMORY: Mapping[str, str] = {
    "SLURM_MEM_PER_NODE": "mem",
    "SLURM_MEM_PER_CPU": "mem-per-cpu",
    "SLURM_MEM_PER_GPU": "mem-per-gpu",
}
#: The key of a client elsewhere
CLIENT_VARIABLE = "MINICLUSTER_SLURM_CLIENT"
#: Urgencies of Flux, by what scontrol calls them
URGENCIES = {"hold": 0, "uhold": 0, "release": 16, "top": 31}


def exported(export: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that --export gives a job, without those of a job around sbatch."""
    # a comma in a value can't be given, as in Slurm
    words = [word for word in export.split(",") if word]
    has_all = "ALL" in [word.upper() for word in words]
    named = {
        word.partition("=")[0]: word.partition("=") for word in words if word.upper() not in ("ALL", "NONE", "NIL")
    }
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith(("SLURM_", "SLURMD_", "MINICLUSTER_SLURM_"))
        and (has_all or name in named or name in KEPT or name.startswith(KEPT_PREFIXES))
    }
    kept.update({name: value for name, (_, has_value, value) in named.items() if has_value})
    return kept


def variables(request: Request) -> dict[str, str]:
    """Return the variables of a job."""
    given, layout, facts = request.given, request.layout, request.facts
    values = {
        "SLURM_JOB_NAME": request.name,
        "SLURM_SUBMIT_DIR": facts.directory,
        "SLURM_SUBMIT_HOST": facts.host,
        "SLURM_CLUSTER_NAME": facts.name,
        "SLURM_JOB_PARTITION": given.get("partition") or facts.name,
        "SLURM_JOB_USER": facts.user,
        "SLURM_JOB_UID": str(os.getuid()),
        "SLURM_JOB_GID": str(os.getgid()),
    }
    if layout.is_given or request.command == "srun":
        values.update({"SLURM_NTASKS": str(layout.tasks), "SLURM_NPROCS": str(layout.tasks)})
    values.update({name: given[option] for name, option in _SAME.items() if given.get(option)})
    values.update({name: str(gpus_of(given[option])[1]) for name, option in _GPUS.items() if option in given})
    # in MiB, as Slurm has them
    values.update({name: str(bytes_of(given[option]) >> 20) for name, option in _OF_MEMORY.items() if option in given})
    if request.command != "srun":
        values[STEP_VARIABLE] = str(layout.nodes) if request.is_instance else "here"
    if request.command == "sbatch":
        values["ENVIRONMENT"] = "BATCH"
        values["SLURM_EXPORT_ENV"] = given.get("export", "ALL")
    return values


def jobspec_of(request: Request, environment: Mapping[str, str], task: Mapping[str, int]) -> dict[str, Any]:
    """Return the jobspec; ``task`` has array and index of a task of an array. Raises SlurmError."""
    given, layout = request.given, request.layout
    resources, count, options = (of_instance if request.is_instance else of_tasks)(layout)
    constraints, queue = constraints_of(given, request.facts)
    own = {**variables(request), **_of_task(task)}
    system: dict[str, Any] = {
        "duration": seconds_of(given["time"]) if "time" in given else 0.0,
        "cwd": given.get("chdir") or request.facts.directory,
        "environment": {**exported(given.get("export", "ALL"), environment), **own},
        "job": {"name": request.name},
        "shell": {"options": {**options, **shell_options(request, task)}},
    }
    more = {"dependencies": _dependencies(request), "constraints": constraints, "queue": queue}
    system.update({key: value for key, value in more.items() if value})
    words = _command(request, system)
    return {
        "version": 1,
        "resources": resources,
        "tasks": [{"command": words, "slot": "task", "count": count}],
        "attributes": {"system": system, "user": {**_user(request, task), **_client(environment)}},
    }


def _command(request: Request, system: dict[str, Any]) -> list[str]:
    """Return the words of the job's command; a script goes with the job, as a file."""
    words = list(request.words)
    if request.script:
        system["files"] = {"slurm_script": {"mode": 0o100700, "data": request.script, "encoding": "utf-8"}}
        words = [*_writer(request, system), *_warner(request, system), "{{tmpdir}}/slurm_script", *words]
    return ["flux", "broker", *words] if request.is_instance else words


def _writer(request: Request, system: Mapping[str, Any]) -> list[str]:
    """Return the words before a script that writes to its files itself."""
    files = system["shell"]["options"].get("output") or {}
    mode = "append" if is_appended(request.given) else "truncate"
    paths = [(files.get(stream) or {}).get("path", "") for stream in ("stdout", "stderr")]
    return [*_program(system, "slurm_output.sh"), mode, *paths]


def _program(system: Mapping[str, Any], name: str) -> list[str]:
    home = system["environment"].get("MINICLUSTER_HOME", "")
    return ["/bin/sh", f"{home}/minicluster/{name}"]


def _warner(request: Request, system: Mapping[str, Any]) -> list[str]:
    """Return the words before a script that gets a signal before its time limit. Raises SlurmError."""
    if "signal" not in request.given:
        return []
    whom, number, seconds = signal_of(request.given["signal"])
    limit = system["duration"]
    if not limit:
        return []
    return [*_program(system, "slurm_signal.sh"), str(max(0, int(limit - seconds))), str(number), whom]


def _client(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the attribute by which a client elsewhere finds its jobs after a cut (mine.py)."""
    key = environment.get(CLIENT_VARIABLE)
    return {"minicluster-client": key} if key else {}


def _user(request: Request, task: Mapping[str, int]) -> dict[str, Any]:
    """Return the attributes of ours: slurm.lua and the commands read them."""
    given, layout = request.given, request.layout
    slurm: dict[str, Any] = {"command": request.command, "tasks": layout.tasks, "cpus": layout.cpus, **task}
    for name in ("partition", "comment"):
        if given.get(name):
            slurm[name] = given[name]
    user: dict[str, Any] = {"slurm": slurm}
    if "requeue" in given or "no-requeue" in given:
        user["minicluster"] = {"requeue": int("requeue" in given)}
    if "qos" in given:
        user["minicluster"] = {**user.get("minicluster", {}), "preemptible": 1}
    return user


def _of_task(task: Mapping[str, int]) -> dict[str, str]:
    """Return the variables of a task of an array."""
    if "index" not in task:
        return {}
    names = {
        "SLURM_ARRAY_JOB_ID": "array",
        "SLURM_ARRAY_TASK_ID": "index",
        "SLURM_ARRAY_TASK_COUNT": "count",
        "SLURM_ARRAY_TASK_MIN": "least",
        "SLURM_ARRAY_TASK_MAX": "most",
        "SLURM_ARRAY_TASK_STEP": "step",
    }
    return {name: str(task[key]) for name, key in names.items() if key in task}


def _dependencies(request: Request) -> list[Mapping[str, str]]:
    dependencies = list(request.dependencies)
    if "begin" in request.given:
        at = moment_of(request.given["begin"], request.facts.now)
        dependencies.append({"scheme": "begin-time", "value": str(at)})
    return dependencies


def urgency_of(given: Mapping[str, str]) -> int:
    """Return the urgency of a job. Raises SlurmError."""
    if "hold" in given:
        return URGENCIES["hold"]
    text = given.get("nice", "0") or "100"
    if not re.fullmatch(r"-?\d+", text):
        raise SlurmError(f"--nice={text}: Invalid numeric value: give a number")
    # Slurm has 2^31 steps, Flux 15 on either side
    nice = int(text)
    return max(1, min(URGENCIES["top"], URGENCIES["release"] - (nice > 0) + (nice < 0) - int(nice / 100)))
