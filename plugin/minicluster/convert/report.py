"""The report of a conversion: warnings, and the comment at the head of the values."""

from dataclasses import dataclass, field
from typing import Any

from minicluster.documents import yamlio


@dataclass
class Report:
    """What was found while a MiniCluster was converted."""

    warnings: list[str] = field(default_factory=list)  #: what runs differently, each with the path of its field
    notes: list[str] = field(
        default_factory=list
    )  #: what was written out so that it runs as before, and what needs no change


@dataclass(frozen=True)
class ValuesFile:
    """The values of a MiniCluster or an MPIJob, and what their reader must know."""

    kind: str
    name: str
    namespace: str  #: "" for none
    release: str  #: the name by which the MiniCluster can be installed
    values: dict[str, Any]
    notes: list[str]
    warnings: list[str]

    @property
    def title(self) -> str:
        """Kind and name, as messages have them."""
        return f"{self.kind} {self.name}"

    @property
    def text(self) -> str:
        """The values as a file that begins with the command that installs them, and with the notes."""
        where = f" -n {self.namespace}" if self.namespace else ""
        file = f"{self.name}-values.yaml"
        command = f"helm install {self.release} charts/minicluster{where} -f {file} --post-renderer minicluster"
        body = yamlio.dump(self.values).decode().removeprefix("---\n")
        return "".join(f"# {line}\n" for line in [command, *self.notes]) + body
