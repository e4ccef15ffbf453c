"""srun in a job of sbatch or salloc: a step of it.

Where the job has a Flux of its own, a step is a job there. A job of one task has none, so its steps are its children.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Mapping, Sequence

from slurm_flux import open_flux, submit
from slurm_jobspec import STEP_VARIABLE, exported, jobspec_of
from slurm_layout import layout_of
from slurm_parse import SlurmError, Submission
from slurm_submit import attach, request_of
from slurm_wanted import is_appended
from slurm_words import file_of

#: STEP_VARIABLE in a job whose steps are its children; else it is the number of nodes that the job asked for
AS_CHILDREN = "here"
#: Cores of the job on this node, by slurm.lua: programs take SLURM_* away from their steps
CORES_VARIABLE = "MINICLUSTER_SLURM_CORES"
#: The image's own PYTHONPATH (world.sh)
OWN_PATH = "MINICLUSTER_PYTHONPATH"
#: What a step takes from its job
_INHERITED = {"ntasks": "SLURM_NTASKS", "cpus-per-task": "SLURM_CPUS_PER_TASK"}
_OF_GPUS = ("gpus", "gpus-per-node", "gpus-per-task", "gres")


def run_step(given: Submission) -> int:
    """Run a step. Raises SlurmError, OSError."""
    values = {**inherited(given.values, os.environ), **given.values}
    if os.environ[STEP_VARIABLE] == AS_CHILDREN:
        return _become(values, given.words)
    number = step_number()
    values.pop("exclusive", None)
    values.pop("dependency", None)
    handle = open_flux()
    request = request_of(handle, "srun", given._replace(values=values))
    jobspec = jobspec_of(request, os.environ, {"step": number})
    jobspec["attributes"]["user"]["slurm"]["command"] = "step"
    system = jobspec["attributes"]["system"]
    system["environment"] = {**_of_step(values), **_with_names(values, request.layout.tasks, number)}
    attach(submit(handle, [jobspec], 16)[0], values)
    return 1


def inherited(values: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the options that a step takes from its job."""
    options = {option: environment[name] for option, name in _INHERITED.items() if name in environment}
    nodes = environment.get(STEP_VARIABLE, AS_CHILDREN)
    if nodes not in (AS_CHILDREN, "0"):
        options["nodes"] = nodes
        on_node = environment.get("SLURM_GPUS_ON_NODE")
        if on_node and not any(option in values for option in _OF_GPUS):
            options["gpus-per-node"] = on_node
    if ("ntasks" in values or "nodes" in values or "ntasks-per-node" in values) and "ntasks" not in values:
        options.pop("ntasks", None)
    return options


def _of_step(values: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a step gets from its job and by --export."""
    of_job = {
        name: value for name, value in os.environ.items() if name.startswith(("SLURM_", "SLURMD_", STEP_VARIABLE))
    }
    return {**exported(values.get("export", "ALL"), os.environ), **of_job}


def _with_names(values: Mapping[str, str], tasks: int, number: int) -> dict[str, str]:
    return {
        **({"SLURM_CPUS_PER_TASK": values["cpus-per-task"]} if "cpus-per-task" in values else {}),
        "SLURM_STEP_ID": str(number),
        "SLURM_STEPID": str(number),
        "SLURM_STEP_NUM_TASKS": str(tasks),
        "SLURM_NTASKS": str(tasks),
        "SLURM_NPROCS": str(tasks),
    }


def _become(values: Mapping[str, str], words: Sequence[str]) -> int:
    """Become the only task of a step. Raises SlurmError, OSError."""
    layout = layout_of({"nodes": "1", **values}, 0, 1)
    room = int(os.environ.get(CORES_VARIABLE, "1"))
    if layout.tasks * layout.cpus > room or layout.nodes > 1:
        raise SlurmError(
            f"Unable to create step for job {os.environ.get('SLURM_JOB_ID')}: More processors requested than permitted"
        )
    if layout.tasks > 1:
        _start_flux(room)
    host = os.environ.get("SLURMD_NODENAME", "")
    of_job = {"SLURM_CPUS_ON_NODE": str(room), "SLURM_JOB_NUM_NODES": "1", "SLURM_NNODES": "1"}
    of_job.update({"SLURM_JOB_NODELIST": host, "SLURM_NODELIST": host})
    environment = {**of_job, **_of_step(values), **_with_names(values, 1, step_number())}
    environment.update({"SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_NODELIST": host})
    environment.update(dict.fromkeys(("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_GTIDS"), "0"))
    environment.update({"SLURM_TASK_PID": str(os.getpid())})
    if values.get("chdir"):
        os.chdir(values["chdir"])
    _redirect(values)
    # for slurm_signal.sh; the process keeps its id
    with Path(_folder(), "slurm-pids").open("a", encoding="ascii") as file:
        file.write(f"{os.getpid()}\n")
    return _execute(words, of_the_work(environment))


def of_the_work(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment as the work had it: without what flux put into it, or slurm.sh set aside."""
    # a task that asked PMI of the script's own job would be the first alone that gets an answer
    own = {name: text for name, text in environment.items() if not name.startswith("PMI_") and name != "PYTHONPATH"}
    for name in [name for name in own if name.startswith("MINICLUSTER_PYTHON") and name != OWN_PATH]:
        own[name[len("MINICLUSTER_") :]] = own.pop(name)
    if own.get(OWN_PATH):
        own["PYTHONPATH"] = own[OWN_PATH]
    return own


def _execute(words: Sequence[str], environment: Mapping[str, str]) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(words[0], list(words), environment)  # noqa: S606 - no shell is needed
    except OSError as error:
        raise SlurmError(f"execve(): {words[0]}: {error.strerror}") from None


def _start_flux(cores: int) -> None:
    """Become srun in a Flux of its own, for several tasks in a job of one task with several cores. Raises OSError."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-step-", dir=_folder()))
    lite = [{"rank": "0", "children": {"core": f"0-{cores - 1}"}}]
    execution = {"R_lite": lite, "nodelist": [os.uname().nodename], "starttime": 0, "expiration": 0}
    (folder / "R").write_text(json.dumps({"version": 1, "execution": execution}), encoding="ascii")
    (folder / "step.toml").write_text(f'[resource]\npath = "{folder}/R"\nnoverify = true\n', encoding="utf-8")
    names = [name for name in os.environ if name.startswith(("SLURM_", "SLURMD_"))]
    environment = of_the_work({**os.environ, STEP_VARIABLE: "1", "MINICLUSTER_SLURM_NAMES": " ".join(names)})
    # Flux's broker removes them (theirs.sh)
    environment.update({f"MINICLUSTER_{name}": os.environ[name] for name in names})
    _execute(["flux", "start", f"-o--config-path={folder}", "srun", *sys.argv[2:]], environment)


def _redirect(values: Mapping[str, str]) -> None:
    """Open the files of standard input, output and error. Raises OSError."""
    job, step = os.environ.get("SLURM_JOB_ID", ""), os.environ.get("SLURM_STEP_ID", "0")
    known = {"j": job, "J": f"{job}.{step}", "t": "0", "n": "0", "s": step}
    known.update({"x": os.environ.get("SLURM_JOB_NAME", ""), "N": os.environ.get("SLURMD_NODENAME", "")})
    known.update({"A": os.environ.get("SLURM_ARRAY_JOB_ID", job), "a": os.environ.get("SLURM_ARRAY_TASK_ID", "0")})
    kind = os.O_APPEND if is_appended(values) else os.O_TRUNC
    write = os.O_WRONLY | os.O_CREAT | kind
    for option, number, flags in (("input", 0, os.O_RDONLY), ("output", 1, write), ("error", 2, write)):
        text = values.get(option, "")
        if text and text not in ("all", "none"):
            path = Path(file_of(text, known))
            if number:
                path.parent.mkdir(parents=True, exist_ok=True)
            opened = os.open(str(path), flags, 0o666)
            os.dup2(opened, number)
            if number == 1 and not values.get("error"):
                os.dup2(opened, 2)


def _folder() -> str:
    """Return the folder for files of this job."""
    return os.environ.get("FLUX_JOB_TMPDIR") or tempfile.gettempdir()


def step_number() -> int:
    """Return the number of a new step: the steps of a job count from 0. Raises OSError."""
    name = f"slurm-steps-{os.environ.get('SLURM_JOB_ID', '')}"
    file = os.open(str(Path(_folder(), name)), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.lockf(file, fcntl.LOCK_EX)
        text = os.read(file, 20).decode()
        number = int(text) if text else 0
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, str(number + 1).encode())
    finally:
        os.close(file)
    return number
