"""Who sets and who reads the variables that the scripts of the pods share: a table for the page of files."""

import re
from pathlib import Path
from typing import NamedTuple

from minicluster.console.templates import rendered

#: The file with the values of a cluster, and what makes it
SETTINGS = "settings.sh"
MAKER = "render/settings.py"
COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
NAME = re.compile(r"\bmc_\w+")
#: A variable is set by an assignment, by `read` and by `for`.
SETS = re.compile(r"\b(mc_\w+)=|\bread -r ((?:\w+ )*\w+)|\bfor (mc_\w+) in\b")
SETTING = re.compile(r'"(mc_\w+)"')


class Variable(NamedTuple):
    """A variable, and the scripts that set and read it."""

    name: str
    setters: list[str]
    readers: list[str]

    @property
    def is_shared(self) -> bool:
        """Whether it crosses files."""
        return len({*self.setters, *self.readers}) > 1


def uses(text: str) -> tuple[set[str], set[str]]:
    """Return the variables that a script sets, and those that it reads."""
    text = COMMENT.sub("", text)
    names = {name for match in SETS.finditer(text) for name in NAME.findall(match[0])}
    return names, set(NAME.findall(SETS.sub("", text)))


def variables(package: Path) -> list[Variable]:
    """Return the variables of all scripts, by name."""
    pods = package / "pod"
    # flux-broker stands in for a program, so its name has no ending
    scripts = sorted([*pods.glob("*/*.sh"), *pods.glob("*/flux-broker")], key=lambda script: script.name)
    by_script = {script.name: uses(script.read_text(encoding="utf-8")) for script in scripts}
    by_script[SETTINGS] = set(SETTING.findall((package / MAKER).read_text(encoding="utf-8"))), set()
    names = {name for sets, reads in by_script.values() for name in sets | reads}
    return [
        Variable(
            name,
            setters=sorted(script for script, (sets, _) in by_script.items() if name in sets),
            readers=sorted(script for script, (_, reads) in by_script.items() if name in reads),
        )
        for name in sorted(names)
    ]


def table(package: Path) -> str:
    """Return the table of those that cross files."""
    return rendered(__file__, "variables.md.j2", variables=[each for each in variables(package) if each.is_shared])
