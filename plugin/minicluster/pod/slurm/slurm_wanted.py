"""What was asked of a job: its shape, the nodes that it may have, its shell, and what the MiniCluster is like.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from typing import Any, Mapping, NamedTuple, Sequence

from slurm_layout import Layout, layout_of, types_of_gpus
from slurm_parse import SlurmError
from slurm_words import bytes_of, file_of, signal_number

#: The default of --signal's seconds
WARNING_SECONDS = 60


class Facts(NamedTuple):
    """What the MiniCluster is like."""

    name: str
    queues: Sequence[str]
    properties: Sequence[str]  #: of nodes; groups are among them
    cores: int  #: of a node
    memory: int  #: bytes of a node; 0 if nodes differ, or it isn't known
    now: float
    host: str
    directory: str
    user: str


class Request(NamedTuple):
    """What was asked of a job, and the shape that follows."""

    command: str  #: sbatch, salloc or srun
    given: Mapping[str, str]
    words: Sequence[str]  #: the command, or the arguments of the script
    script: str  #: its text; "" for none
    layout: Layout
    dependencies: Sequence[Mapping[str, str]]
    facts: Facts

    @property
    def is_instance(self) -> bool:
        """Whether the job has a Flux of its own, whose jobs are its steps."""
        return self.command != "srun" and not self.layout.is_single

    @property
    def name(self) -> str:
        """The name of the job."""
        default = "wrap" if "wrap" in self.given else "sbatch" if self.script else "interactive"
        return self.given.get("job-name") or (PurePath(self.words[0]).name if self.words else "") or default


def hosts_of(given: Mapping[str, str]) -> str:
    """Return the hosts that a job must have, as a hostlist; "" for any. Raises SlurmError."""
    text = given.get("nodelist", "")
    path = given.get("nodefile", text if "/" in text else "")
    if not path:
        return text
    try:
        return ",".join(Path(path).read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError) as error:
        raise SlurmError(f"{path}: Unable to read the file of hosts: {error}") from None


def shape_of(given: Mapping[str, str], facts: Facts, hosts: int) -> Layout:
    """Return a job's shape, if a node can hold it. Raises SlurmError."""
    layout = layout_of(given, hosts, facts.cores)
    wanted = _memory(given, layout)
    if facts.memory and wanted > facts.memory:
        raise SlurmError(
            f"Memory specification can not be satisfied: {wanted >> 20} MiB on a node that has {facts.memory >> 20} MiB"
        )
    return layout


def _memory(given: Mapping[str, str], layout: Layout) -> int:
    """Return the bytes that a job asks of each node. Raises SlurmError."""
    tasks = layout.tasks_of_node or 1
    if "mem" in given:
        return bytes_of(given["mem"])
    if "mem-per-cpu" in given:
        return bytes_of(given["mem-per-cpu"], "--mem-per-cpu") * layout.cpus * tasks
    if "mem-per-gpu" in given:
        return bytes_of(given["mem-per-gpu"], "--mem-per-gpu") * (layout.node_gpus or layout.task_gpus * tasks)
    return 0


def constraints_of(given: Mapping[str, str], facts: Facts) -> tuple[dict[str, Any], str]:
    """Return a job's constraints (RFC 31), {} for none, and the queue, "" for Flux's default. Raises SlurmError."""
    parts: list[dict[str, Any]] = []
    queue, hosts = "", hosts_of(given)
    partition = given.get("partition", "").split(",")[0]
    if partition in facts.queues:
        queue = partition
    elif partition in facts.properties:
        parts.append({"properties": [partition]})
    elif partition not in ("", facts.name):
        known = ", ".join([*facts.queues, *facts.properties] or [facts.name])
        raise SlurmError(f"invalid partition specified: {partition}: there is {known}")
    if hosts:
        parts.append({"hostlist": [hosts]})
    if given.get("exclude"):
        parts.append({"not": [{"hostlist": [given["exclude"]]}]})
    parts += [_features(text, facts) for text in [given.get("constraint", "")] if text]
    for kind in sorted(types_of_gpus(given)):
        if kind not in facts.properties:
            raise SlurmError(f"{kind}: the type of a GPU is the name of a group here, and there is none: leave it out")
        parts.append({"properties": [kind]})
    return ({} if not parts else parts[0] if len(parts) == 1 else {"and": parts}), queue


def _features(text: str, facts: Facts) -> dict[str, Any]:
    """Return the constraint for --constraint: features joined by & or by |. Raises SlurmError."""
    names = re.split(r"[&|]", text)
    unknown = [name for name in names if name not in facts.properties]
    if unknown or ("&" in text and "|" in text):
        known = f"{', '.join(facts.properties)}, joined by & or |" if facts.properties else "no property"
        raise SlurmError(f"--constraint={text}: Invalid feature specification: nodes have {known}")
    if "|" in text:
        return {"or": [{"properties": [name]} for name in names]}
    return {"properties": names}


def shell_options(request: Request, task: Mapping[str, int]) -> dict[str, Any]:
    """Return the options of Flux's shell. Raises SlurmError."""
    given = request.given
    options: dict[str, Any] = {}
    if request.is_instance:
        options.update({"mpi": "none", "exit-timeout": "none"})
    files = _files(request, task)
    if files:
        options["output"] = files
    if request.script or given.get("input", "all") not in ("all", "none"):
        path = file_of(given["input"], {"x": request.name}) if given.get("input") else "/dev/null"
        options["input"] = {"stdin": {"type": "file", "path": path}}
    if "signal" in given and not request.script:
        _, number, seconds = signal_of(given["signal"])
        options["signal"] = {"signum": number, "timeleft": seconds}
    if "distribution" in given and given["distribution"].split(":")[0] == "cyclic":
        options["taskmap"] = {"scheme": "cyclic", "value": ""}
    if "pty" in given:
        options["pty"] = {"interactive": 1}
    if given.get("cpu-bind", "").split(",")[-1] == "none":
        options["cpu-affinity"] = "off"
    if given.get("mpi", "").startswith("pmix"):
        options["pmi"] = "pmix"
    if given.get("kill-on-bad-exit", "0") != "0" or ("kill-on-bad-exit" in given and not given["kill-on-bad-exit"]):
        options["exit-on-error"] = 1
    if request.command == "srun" and "wait" in given:
        options["exit-timeout"] = "none" if given["wait"] == "0" else f"{given['wait']}s"
    return options


def _files(request: Request, task: Mapping[str, int]) -> dict[str, Any]:
    """Return the options for standard output and error. Raises SlurmError."""
    given = request.given
    if request.command == "salloc":
        return {}
    default = "slurm-%A_%a.out" if "index" in task else "slurm-%j.out"
    known = {"x": request.name, "u": request.facts.user}
    known.update({letter: str(task[key]) for letter, key in (("A", "array"), ("a", "index")) if key in task})
    options: dict[str, Any] = {}
    for stream, text in (
        ("stdout", given.get("output") or (default if request.script else "")),
        ("stderr", given.get("error", "")),
    ):
        if text and text not in ("none", "all"):
            options[stream] = {"type": "file", "path": file_of(text, known)}
        if "label" in given:
            options.setdefault(stream, {})["label"] = True
        if "unbuffered" in given:
            options.setdefault(stream, {})["buffer"] = {"type": "none"}
    # a script begins its files itself
    if request.script or is_appended(given):
        options["mode"] = "append"
    return options


def is_appended(given: Mapping[str, str]) -> bool:
    """Whether files of output keep what they have."""
    return given.get("open-mode", "").startswith("a")


def signal_of(text: str) -> tuple[str, int, int]:
    """Return whom --signal=[{R|B}:]SIGNAL[@SECONDS] means, `script` or `steps`, and its numbers. Raises SlurmError."""
    match = re.fullmatch(r"(?:([RB]{1,2}):)?(\w+)(?:@(\d+))?", text.strip())
    number = signal_number(match[2]) if match else 0
    if not match or not number:
        raise SlurmError(f"--signal={text}: Invalid signal: give such as USR1@60 or B:TERM@120")
    return "script" if "B" in (match[1] or "") else "steps", number, int(match[3] or WARNING_SECONDS)
