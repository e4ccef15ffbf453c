"""The options of Flux's shell for a job: its files, signals, and how its tasks run.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import re
import signal
from typing import Any, Mapping

from slurm_parse import SlurmError
from slurm_wanted import Request
from slurm_words import file_of

#: The default of --signal's seconds
WARNING_SECONDS = 60


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
    names = {each.name[3:]: int(each) for each in signal.Signals}
    number = match and (
        names.get(match[2].upper().replace("SIG", "", 1)) or (int(match[2]) if match[2].isdigit() else 0)
    )
    if not match or not number:
        raise SlurmError(f"--signal={text}: Invalid signal: give such as USR1@60 or B:TERM@120")
    return "script" if "B" in (match[1] or "") else "steps", number, int(match[3] or WARNING_SECONDS)
