"""Copies files to and from a node, as tar archives through `kubectl exec`.

`kubectl cp` does the first, but it takes *, ? and [ in names for patterns, and leaves such files out without a word.
"""

import os
import posixpath
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from minicluster.cluster.lead import Node
from minicluster.cluster.pods import FIND_TOOLS
from minicluster.console import streams
from minicluster.console.signals import held
from minicluster.errors import StateError
from minicluster.exec.archive import Counted, FileChange, Transfer, add, among, extract, read_failure
from minicluster.kube.kubectl import Kubernetes, ported
from minicluster.kube.tool import CommandError
from minicluster.status.lookup import refusals

#: Prints what the first path is, and then what has the name of the third word in it: folder, file or nothing. Says when
#: tar is missing, or the second path is no folder. With a fourth word a folder is made if there is nothing, and the
#: reason comes last if that fails
FIND_TARGET = (
    f"{FIND_TOOLS}\n"
    + """\
command -v tar >/dev/null || { echo tarless; exit; }
[ -z "$4" ] || [ -e "$1" ] || why=$(mkdir -p "$1" 2>&1) || { echo "unmade $why"; exit; }
[ -d "$2" ] || echo homeless
for path in "$1" "$1/$3"; do
  if [ -d "$path" ]; then echo folder; elif [ -e "$path" ]; then echo file; else echo nothing; fi
done
"""
)
#: Runs tar with words that are not translated
TAR = ("/bin/sh", "-c", f'{FIND_TOOLS}unset TAR_OPTIONS; LC_ALL=C.UTF-8 exec tar "$@"', "sh")
BROKEN = "the connection to the pod broke: run it again"


def split(text: str) -> tuple[str, str]:
    """Return the name and the path of NAME:PATH, or "" and a local path. For scp, too, a / before the colon decides."""
    name, colon, path = text.partition(":")
    return (name, path) if colon and name and "/" not in name else ("", text)


def copy_into(  # noqa: PLR0913 - what, where, and what of it
    kubernetes: Kubernetes, node: Node, source: str, path: str, say: streams.Say, *, only: Iterable[str] | None = None
) -> tuple[str, str]:
    """Copy a local file or folder to a node, and say where; return the folder and the name that it has there.

    A path that ends with / is a folder, which is made. ``only`` are names of files in a folder, without the others.
    Raises StateError, and OSError for the local file.
    """
    place = _Place(kubernetes, node, path)
    own = os.path.basename(os.path.abspath(source)) or "."  # noqa: PTH100, PTH119 - Path has no name for . and ..
    kind, inner, has_parent = place.look(own, makes=path.endswith("/"))
    folder, name = (place.path, own) if kind == "folder" else posixpath.split(place.path)
    is_folder = Path(source).is_dir()
    target, there = posixpath.join(folder, name), inner if kind == "folder" else kind
    if kind == "file" and path.endswith("/"):
        raise StateError(f"{path} is a file on {node}, not a folder: remove it, or give another path")
    if not kind and not has_parent:
        raise StateError(f"{path}: there is no folder {folder} on {node}: write {folder}/ to make it")
    if not kind and not is_folder:
        _refuse_name(path, own, f" on {node}")
    if there and (there == "folder") != is_folder:
        # tar would remove what is there, and cp refuses
        raise StateError(f"{target} is a {there} on {node}: remove it, or give another path")
    where = _named(node, target)
    transfer = Transfer(source, where, say, is_folder, _size(source, only), only=among(name, only))
    with (
        streams.waiting(),
        place.tar(transfer, "--stdin", words=("-xmf", "-", "-C", folder), stdin=subprocess.PIPE) as (process, _),
    ):
        assert process.stdin  # a pipe
        counted = cast("IO[bytes]", Counted(process.stdin, transfer))
        # tar may end early, and says why. GNU's format has names of any length, and any tar knows it
        with (
            suppress(BrokenPipeError),
            tarfile.open(fileobj=counted, mode="w|", format=tarfile.GNU_FORMAT) as archive,
        ):
            add(archive, Path(source).resolve(), name, transfer)
    transfer.tell()
    return folder, name


def copy_from(kubernetes: Kubernetes, node: Node, path: str, target: str, say: streams.Say) -> None:
    """Copy a file or folder of a node to this machine, and say where. Raises StateError, OSError for the local file."""
    place = _Place(kubernetes, node, path)
    kind, _, _ = place.look()
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
    transfer, is_whole = Transfer(_named(node, place.path), str(goal), say, kind == "folder"), True
    with streams.waiting(), place.tar(transfer, words=words, stdout=subprocess.PIPE) as (process, changed):
        assert process.stdout  # a pipe
        counted = cast("IO[bytes]", Counted(process.stdout, transfer))
        try:
            with tarfile.open(fileobj=counted, mode="r|") as archive:
                for member in archive:
                    extract(archive, member, above, goal, transfer)
        except tarfile.ReadError:
            is_whole = False  # most often tar says why
        while process.stdout.read(1 << 16):
            pass
    if not is_whole:
        raise StateError(f"{path}: {BROKEN}")
    transfer.changed += changed
    transfer.tell()


def _named(node: Node, path: str) -> str:
    """Return a path on a node as a person writes it."""
    return f"{node.host}:{path.removeprefix('./')}"


def _size(source: str, only: Iterable[str] | None) -> int:
    """Return the bytes of a local file, or of the files in a folder; of some of them with ``only``."""
    path, size = Path(source), 0
    below = path.rglob("*") if only is None else (path / name for name in only)
    for each in below if path.is_dir() else [path]:
        with suppress(FileNotFoundError):  # somebody removes it just now
            size += each.stat().st_size if each.is_file() else 0
    return size


def _refuse_name(target: str, own: str, where: str) -> None:
    """Raise StateError if a target that doesn't exist may be meant as a folder for a file: its name has no ending."""
    if PurePosixPath(own).suffix and not PurePosixPath(target).suffix:
        raise StateError(f"there is no {target}{where}: write {target}/ to make that folder, or {target}/{own}")


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

    def look(self, name: str = "", *, makes: bool = False) -> tuple[str, str, bool]:
        """Return what is there, what has a name in it, and whether its parent exists: `folder`, `file` or "".

        With ``makes`` a folder is made if nothing is there. Raises StateError.
        """
        words = (
            "/bin/sh",
            "-c",
            FIND_TARGET,
            "sh",
            self.path,
            posixpath.dirname(self.path),
            name,
            "1" if makes else "",
        )
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
        kind, inner = (each.replace("nothing", "") for each in said[-2:])
        return kind, inner, "homeless" not in said

    @contextmanager
    def tar(
        self, transfer: Transfer, *options: str, words: tuple[str, ...], **pipe: int
    ) -> Iterator[tuple[subprocess.Popen[bytes], list[FileChange]]]:
        """Run tar there, and give it with the files that changed meanwhile, known at its end.

        Raises StateError if it fails.
        """
        line = self.kubernetes.words(*self.node.pod.exec_words(*options), *TAR, *words)
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **pipe}
        changed: list[FileChange] = []
        with ExitStack() as stack:
            said = stack.enter_context(tempfile.TemporaryFile())
            with held():
                process = stack.enter_context(subprocess.Popen(line, stderr=said, **pipes))  # noqa: S603
                stack.push(partial(_end, process))
            stack.enter_context(transfer.ends_when_stalled(process))
            yield process, changed
            _end_input(process)
            if code := process.wait():
                said.seek(0)
                failures, why = read_failure(said.read(), code)
                if not failures:
                    raise StateError(f"{self.given}: {transfer.stall or why or BROKEN}")
                changed += failures


def _end(process: "subprocess.Popen[bytes]", kind: type[BaseException] | None, *_: object) -> None:
    """Kill a process whose caller has failed, or is interrupted."""
    if kind:
        process.kill()
        _end_input(process)


def _end_input(process: "subprocess.Popen[bytes]") -> None:
    if process.stdin:
        with suppress(OSError):  # tar has ended
            process.stdin.close()
