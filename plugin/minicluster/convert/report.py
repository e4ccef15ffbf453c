"""The report of a conversion: warnings, and the comment at the head of the values."""

from dataclasses import dataclass, field

from minicluster import yamlio


@dataclass
class Report:
    """What was found while a MiniCluster was converted."""

    warnings: list[str] = field(default_factory=list)  #: what runs differently, each with the path of its field
    notes: list[str] = field(
        default_factory=list
    )  #: what was written out so that it runs as before, and what needs no change


@dataclass(frozen=True)
class ValuesFile:
    """A values file, and what its reader must know."""

    name: str
    text: str
    warnings: list[str]


def values_file(release: str, name: str, namespace: str, values: dict[str, object], notes: list[str]) -> str:
    """Return values as a file that begins with the command that installs them, and with the notes."""
    where = f" -n {namespace}" if namespace else ""
    command = f"helm install {release} charts/minicluster{where} -f {name}-values.yaml --post-renderer minicluster"
    body = yamlio.dump(values).decode().removeprefix("---\n")
    return "".join(f"# {line}\n" for line in [command, *notes]) + body
