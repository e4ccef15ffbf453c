"""The programs that run in the pods, in a folder for each purpose.

- ``start``: how each container starts, and what it needs before its broker or its command
- ``work``: the lead's work, and what jobs run in
- ``leave``: how a pod stops, what happens to its jobs, and how the next lead repairs what a killed one left
- ``agent``: the autoscaler, what holds busy pods, and the metrics
- ``view``: the copy of the Flux view, and the environment to use Flux
- ``slurm``: Slurm's commands, in a ConfigMap of their own
- ``queue``: what Flux knows of nodes and jobs, for the other Python programs

In a pod they are in one folder and find each other by file name, so no two have the same name.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

#: Lines that are a comment alone, with the end of the line before them. Both read all programs in a millisecond
COMMENTS = re.compile(r"\n(?:[ \t]*#[^\n]*\n)+")
#: A docstring of one line before a statement, and that of a module
DOCSTRINGS = re.compile(r'\n([ \t]+)"""[^\n]*"""(?=\n{1,2}\1\S)|\A"""[^"]*"""\n+')


@cache
def programs() -> Mapping[str, Path]:
    """Return the files by name, sorted."""
    files = sorted(Path(__file__).parent.glob("[a-z]*/*"), key=lambda file: file.name)
    return {file.name: file for file in files if file.is_file()}


@cache
def shipped() -> Mapping[str, str]:
    """Return the texts of the programs by name, as a ConfigMap has them."""
    return {name: without_comments(file.read_text(encoding="utf-8")) for name, file in programs().items()}


def without_comments(text: str) -> str:
    r"""Return a program without lines that are a comment alone, and without most docstrings.

    `kubectl apply` keeps all of an object in an annotation too, and annotations have 256 KiB at most.

    >>> without_comments("#!/bin/sh\n# one\n  # two\n\n# three\necho '# four' # five\n")
    "#!/bin/sh\n\necho '# four' # five\n"
    """
    return DOCSTRINGS.sub("", COMMENTS.sub("\n", text))
