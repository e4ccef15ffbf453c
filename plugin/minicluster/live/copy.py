"""Copies files to and from a node, as tar archives through `kubectl exec`, and from the lead to all nodes.

`kubectl cp` does the first, but it takes *, ? and [ in names for patterns, and leaves such files out without a word.
"""

import os
import posixpath
import shutil
import subprocess
import tarfile
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from minicluster import lines, streams
from minicluster.cluster.find import broker_pods
from minicluster.cluster.lead import Lead
from minicluster.cluster.node import Node
from minicluster.cluster.pods import read_all_pods
from minicluster.errors import StateError
from minicluster.kube.kubectl import Kubernetes, ported
from minicluster.lead.ask import program_words
from minicluster.lead.program import first_line
from minicluster.live.lookup import refusals
from minicluster.live.run import run_program
from minicluster.streams import Say
from minicluster.tool import NOISE, CommandError

#: Prints what the first path is, nothing if there is none; says when tar is missing, or the second path is no folder.
#: With a third word a folder is made if there is nothing, and the reason comes last if that fails
FIND_TARGET = """\
command -v tar >/dev/null || { echo tarless; exit; }
[ -z "$3" ] || [ -e "$1" ] || why=$(mkdir -p "$1" 2>&1) || { echo "unmade $why"; exit; }
[ -d "$2" ] || echo homeless
if [ -d "$1" ]; then echo folder; elif [ -e "$1" ]; then echo file; fi
"""
#: What GNU tar says that explains no failure
TAR_NOTES = ("tar: Removing leading ", "tar: Exiting with failure status", "tar: Error is not recoverable")
BROKEN = "the connection to the pod broke: run it again"
#: The most names in a message
SHOWN_NAMES = 5


def split(text: str) -> tuple[str, str]:
    """Return the name and the path of NAME:PATH, or "" and a local path. For scp, too, a / before the colon decides."""
    name, colon, path = text.partition(":")
    return (name, path) if colon and name and "/" not in name else ("", text)


def copy_into(kubernetes: Kubernetes, node: Node, source: str, path: str, say: Say) -> tuple[str, str]:
    """Copy a local file or folder to a node, and say where; return the folder and the name that it has there.

    A path that ends with / is a folder, which is made. Raises StateError, and OSError for the local file.
    """
    place = _Place(kubernetes, node, path)
    # a folder may be given as . or ..
    own = os.path.basename(os.path.abspath(source)) or "."  # noqa: PTH100, PTH119 - Path has no name for them
    kind, has_parent = place.look(makes=path.endswith("/"))
    folder, name = (place.path, own) if kind == "folder" else posixpath.split(place.path)
    if kind == "file" and path.endswith("/"):
        raise StateError(f"{path} is no folder on {node}, but a file: remove it, or give another path")
    if not kind and not has_parent:
        raise StateError(f"{path}: there is no folder {folder} on {node}: write {folder}/ to make it")
    if not kind and not Path(source).is_dir():
        _refuse_name(path, own, f" on {node}")
    left = _LeftOut()
    with place.tar("--stdin", words=("-xmf", "-", "-C", folder), stdin=subprocess.PIPE) as process:
        assert process.stdin  # noqa: S101 - a pipe
        # tar may end early, and says why. GNU's format has names of any length, and any tar knows it
        with (
            suppress(BrokenPipeError),
            tarfile.open(fileobj=process.stdin, mode="w|", format=tarfile.GNU_FORMAT) as archive,
        ):
            archive.add(os.path.realpath(source), name, filter=left.without_owner)
    left.tell(say)
    say(f"wrote {posixpath.join(folder, name)} on {node}")
    return folder, name


def copy_from(kubernetes: Kubernetes, node: Node, path: str, target: str, say: Say) -> None:
    """Copy a file or folder of a node to this machine, and say where. Raises StateError, OSError for the local file."""
    place = _Place(kubernetes, node, path)
    kind, _ = place.look()
    if not kind:
        raise StateError(f"{path}: there is no such file or folder on {node}")
    parent, name = posixpath.split(place.path)
    is_inside = (Path(target).is_dir() or target.endswith("/")) and name not in ("", ".", "..")
    goal = Path(target, name) if is_inside else Path(target)
    if kind == "file" and not goal.exists() and not is_inside:
        _refuse_name(target, name, "")
    # a link is followed when it is the path itself
    words = ("-cf", "-", "-C", place.path, ".") if kind == "folder" else ("-chf", "-", "-C", parent, f"./{name}")
    above = 0 if kind == "folder" else 1
    left, is_whole = _LeftOut(), True
    with place.tar(words=words, stdout=subprocess.PIPE) as process:
        assert process.stdout  # noqa: S101 - a pipe
        try:
            with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                for member in archive:
                    _extract(archive, member, above, goal, left)
        except tarfile.ReadError:
            is_whole = False  # most often tar says why
        while process.stdout.read(1 << 16):
            pass
    if not is_whole:
        raise StateError(f"{path}: {BROKEN}")
    left.tell(say)
    say(f"wrote {goal}")


def _refuse_name(target: str, own: str, where: str) -> None:
    """Raise StateError if a target that doesn't exist may be meant as a folder for a file: its name has no ending."""
    if PurePosixPath(own).suffix and not PurePosixPath(target).suffix:
        raise StateError(f"there is no {target}{where}: write {target}/ to make that folder, or {target}/{own}")


def distribute(kubernetes: Kubernetes, lead: Lead, folder: str, name: str) -> int:
    """Bring a file or folder of the lead to all other nodes; return the exit code. Names nodes that are down."""
    with refusals():
        pods = kubernetes.select("pods", broker_pods(lead.cluster))
    hosts = [
        "-".join(filter(None, (lead.cluster, group, str(index))))
        for group, its in read_all_pods(pods).items()
        for index, pod in its.items()
        if not pod.has_ended
    ]
    key = f"minicluster-{uuid.uuid4().hex}"
    words = program_words(lead, folder, name, key, streams.program(), *hosts)
    return run_program(kubernetes, lead, words, first_line("distribute"))


@dataclass(frozen=True)
class _Place:
    """A path in a node's container."""

    kubernetes: Kubernetes
    node: Node
    given: str

    @property
    def path(self) -> str:
        """The path, which is never an option of a program."""
        path = self.given.rstrip("/") or "/"
        return path if path.startswith("/") else f"./{path}"

    def look(self, *, makes: bool = False) -> tuple[str, bool]:
        """Return `folder`, `file`, or "" if nothing is there, and whether its parent exists. Raises StateError.

        With ``makes`` a folder is made if nothing is there.
        """
        words = ("sh", "-c", FIND_TARGET, "sh", self.path, posixpath.dirname(self.path), "1" if makes else "")
        try:
            text = self.kubernetes.kubectl(*self.node.pod.exec_words(), *words)
        except CommandError as error:
            with refusals():
                raise ported(error) from None
        said, pod = text.split(), self.node.pod
        if "tarless" in said:
            raise StateError(f"container {pod.runner} of pod {pod.name} has no tar: use an image that has it")
        if "unmade" in said:
            raise StateError(f"{self.given}: {text.partition(' ')[2]}")
        return next((kind for kind in said if kind in ("folder", "file")), ""), "homeless" not in said

    @contextmanager
    def tar(self, *options: str, words: tuple[str, ...], **pipe: int) -> Iterator[subprocess.Popen[bytes]]:
        """Run tar there. Raises StateError if it fails."""
        line = self.kubernetes.words(*self.node.pod.exec_words(*options), "tar", *words)
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **pipe}
        with tempfile.TemporaryFile() as said, subprocess.Popen(line, stderr=said, **pipes) as process:  # noqa: S603
            try:
                yield process
            except BaseException:
                process.kill()
                raise
            finally:
                if process.stdin:
                    with suppress(OSError):  # tar has ended
                        process.stdin.close()
            if process.wait():
                raise self._error(said)

    def _error(self, said: IO[bytes]) -> StateError:
        said.seek(0)
        text = said.read().decode(errors="replace")
        told = (line for line in lines.split(text) if not (NOISE.match(line) or line.startswith(TAR_NOTES)))
        why = next((line.removeprefix("error: ") for line in told if line.strip()), BROKEN)
        way = ": ask for a Role that allows it" if CommandError("kubectl exec", why).is_forbidden else ""
        return StateError(f"{self.given}: {why}{way}")


@dataclass
class _LeftOut:
    """What is not copied: neither a file nor a folder."""

    names: list[str] = field(default_factory=list)

    def without_owner(self, member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        """Return a local file or folder as it is in the archive: there it belongs to the container's user."""
        if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
            self.names.append(member.name)
            return None
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    def tell(self, say: Say) -> None:
        """Name some of it."""
        more = len(self.names) - SHOWN_NAMES
        if self.names:
            also = f" and {more} more" if more > 0 else ""
            say(f"left out, because they are neither files nor folders: {', '.join(self.names[:SHOWN_NAMES])}{also}")


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, above: int, goal: Path, left: _LeftOut) -> None:
    """Write a member of an archive below a path. Links are left out: they could lead other members elsewhere."""
    target = _below(goal, member.name, above)
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
    elif member.isfile() or member.islnk():
        target.parent.mkdir(parents=True, exist_ok=True)
        if member.islnk():
            shutil.copyfile(_below(goal, member.linkname, above), target)
        else:
            with target.open("wb") as file:
                shutil.copyfileobj(cast("IO[bytes]", archive.extractfile(member)), file)
        target.chmod(member.mode & 0o777)
    else:
        left.names.append(member.name)


def _below(goal: Path, name: str, above: int) -> Path:
    parts = PurePosixPath(name).parts
    if ".." in parts or name.startswith("/"):
        raise StateError(f"the pod's tar names {name}, which is outside of what was asked for: look at its image")
    return goal.joinpath(*parts[above:])
