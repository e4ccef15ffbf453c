"""Snippets that wrote Flux's resources by `flux R encode`, for GPUs above all: they become the runner's numbers.

flux-operator's entrypoint made R without GPUs, and its charts' snippets wrote another one over it. Here R is made of
`cores` and `gpus`, and the folder of that file does not exist.
"""

import re

from minicluster.convert.part import Part, runners
from minicluster.convert.snippets import names_of_operator
from minicluster.flux.idset import parse_idset

#: A line that writes R and does nothing else
WRITES_R = re.compile(
    r"[ \t]*(?:sudo[ \t]+)?flux[ \t]+R[ \t]+encode\b([^\n;&|>]*)>[^\n;&|]*/etc/flux/system/R\b[^\n;&]*"
)
#: One that only shows it
SHOWS = re.compile(r"[ \t]*cat[ \t]+\S*/etc/flux/system/R[\"']?[ \t]*(?:\|\|[ \t]*true[ \t]*)?")
OPTIONS = {"cores": r"(?:--cores|-c)[= \t]*(\S+)", "gpus": r"(?:--gpus?|-g)[= \t]*(\S+)"}
IDSET = re.compile(r"[0-9]{1,4}(?:-[0-9]{1,4})?(?:,[0-9]{1,4}(?:-[0-9]{1,4})?)*")


def take_resources(spec: Part) -> None:
    """Write out cores and GPUs of snippets that wrote R, in place of their lines."""
    for runner in runners(spec):
        for key in ("init", "pre", "brokerPre", "workerPre"):
            if runner.text(f"commands.{key}"):
                _take(runner, key)


def _take(runner: Part, key: str) -> None:
    text = runner.text(f"commands.{key}")
    lines = [line for line in text.split("\n") if not line.endswith("\\")]
    lines_encoded = [match[1] for line in lines if (match := WRITES_R.fullmatch(line))]
    if not lines_encoded:
        return
    dropped = [line for line in lines if WRITES_R.fullmatch(line) or SHOWS.fullmatch(line)]
    _drop(runner.at("commands"), key, dropped)
    # the last one counted
    numbers = {field: match[1] for field, option in OPTIONS.items() if (match := re.search(option, lines_encoded[-1]))}
    known = {field: len(parse_idset(ids)) for field, ids in numbers.items() if IDSET.fullmatch(ids.strip("\"'"))}
    runner.fields.update(known)
    parts = [f"{runner.path}.{field} is {number} now" for field, number in known.items()]
    parts += [f"set {runner.path}.{field}" for field in numbers if field not in known]
    names = ", ".join(names_of_operator(f"commands.{key}", "\n".join(dropped)))
    uses = f"; they use {names}, which only flux-operator's pods have" if names else ""
    made = ", ".join(parts) or "Flux counts the cores of its Kubernetes node here too"
    runner.warn(f"commands.{key}", f"wrote R by `flux R encode`: {made}. Its lines are dropped{uses}")


def _drop(commands: Part, key: str, dropped: list[str]) -> None:
    """Take lines out of a snippet, and the snippet if nothing is left. An `if` or a loop keeps a command."""
    text = commands.text(key)
    has_blocks = re.search(r"\b(?:then|else|do)\b|\{[ \t]*$|(?:\\|&&|\|\|)[ \t]*$", text, re.MULTILINE)
    lines = [("true" if has_blocks else None) if line in dropped else line for line in text.split("\n")]
    kept = "\n".join(line for line in lines if line is not None)
    if kept.strip():
        commands.fields[key] = kept
    else:
        del commands.fields[key]
