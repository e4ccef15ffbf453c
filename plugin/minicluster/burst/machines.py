"""The files by which machines outside Kubernetes join a root; they need Flux and nothing else.

All machines of a burst have the same files: a broker finds its rank by its host's name. Paths in the files are
relative; only the unit names the folder.
"""

from dataclasses import dataclass
from pathlib import Path

from minicluster.burst import plan, root
from minicluster.burst.root import BurstRequest
from minicluster.console import streams
from minicluster.console.templates import rendered
from minicluster.errors import OutputError
from minicluster.render import broker, model, resources
from minicluster.render.model import MiniClusterModel

#: The folder on each machine, as the unit names it.
FOLDER = "/etc/minicluster"
UNIT = "minicluster-burst.service"
#: The files that the folder may have.
NAMES = ("broker.toml", "curve.cert", "R", "start.sh", UNIT)


@dataclass(frozen=True)
class File:
    """A file of the folder."""

    name: str
    text: str
    mode: int


def files(burst: MiniClusterModel, certificate: str) -> list[File]:
    """Return the files of a burst; R only when the cores of all hosts are known.

    The resource set that counts is the lead's.
    """
    r = resource_set(burst)
    return [
        File("broker.toml", broker.of_machine(burst, has_r=r is not None), 0o644),
        File("curve.cert", certificate, 0o400),
        *([File("R", r, 0o644)] if r is not None else []),
        File("start.sh", start(burst), 0o755),
        File(UNIT, unit(burst), 0o644),
    ]


def resource_set(burst: MiniClusterModel) -> str | None:
    """Return R (RFC 20) on a line; None when the cores of a host are known to Flux on that host only."""
    if any(part.cores is None for part in resources.nodes(burst)):
        return None
    return resources.resource_set(burst) + "\n"


def start(burst: MiniClusterModel) -> str:
    """Return the script that starts a machine's broker."""
    attributes = broker.setting(broker.tree(burst) | model.log_attributes(burst, to_file=False))
    return rendered(__file__, "start.sh.j2", start=[*broker.start_words("broker.toml"), *attributes])


def unit(burst: MiniClusterModel) -> str:
    """Return the systemd unit."""
    context = burst.runner.get("securityContext", {})
    user = context.get("runAsUser", burst.spec["pod"]["securityContext"].get("runAsUser", 0))
    lead = burst.flux["bursting"]["leadBroker"]["name"]
    return rendered(__file__, f"{UNIT}.j2", lead=lead, user=int(user), folder=FOLDER, unit=UNIT)


def write(folder: Path, files: list[File]) -> None:
    """Write the files into a folder, in place of those of an earlier run. Raises OutputError when it has others."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        others = sorted({path.name for path in folder.iterdir()} - set(NAMES))
        if others:
            raise OutputError(f"{folder} has other files, such as {others[0]}: give a new or empty folder")
        for name in NAMES:
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} can't be written: {error.strerror}") from None
    for file in files:
        streams.write_file(folder / file.name, file.text.encode(), file.mode)


def write_for(request: BurstRequest, address: str | None, folder: Path) -> None:
    """Write the files of a burst's hosts into a folder. Raises BurstError, OutputError."""
    lead = root.find_address(request, address)
    made = plan.values(request.root, request.burst, request.burst.size, lead)
    burst = plan.member(request.root, request.burst, made)
    write(folder, files(burst, root.find_certificate(request, lead)))
    streams.say(f"wrote {folder}: copy it to each host as {FOLDER}, then run its start.sh there, or enable its {UNIT}")
