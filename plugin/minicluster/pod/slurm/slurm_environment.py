"""The variables of a job that are known when it is submitted. slurm.lua sets those of the nodes and tasks that it gets.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Mapping

from slurm_words import bytes_of, gpus_of

if TYPE_CHECKING:
    from slurm_wanted import Request

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
