"""Brings a folder of this machine to all nodes, for a job that runs there: `minicluster flux NAME --upload DIR`.

Each state of a folder has a place of its own on the nodes, by the digest of its files: a job that waits finds what was
there at its submission, and a folder that has not changed is not sent again.
"""

import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from minicluster.cluster.find import broker_pods
from minicluster.cluster.lead import Lead
from minicluster.cluster.pods import FIND_TOOLS, read_all_pods
from minicluster.console.streams import Say
from minicluster.errors import StateError, UsageError
from minicluster.exec.copy import copy_into, distribute
from minicluster.exec.submitted import FOLLOWING, SUBMITTING
from minicluster.kube.kubectl import Kubernetes, ported
from minicluster.kube.tool import CommandError
from minicluster.status.lookup import refusals
from minicluster.waiting.ready import find_ready_lead

#: Where uploads are in the folder of our files on each node, which is a volume
UPLOADS = "uploads"
#: A folder that is larger gets a warning, with its largest files
LARGE_BYTES = 100_000_000
#: Prints which nodes have an upload, and with a second word notes that
NOTE_NODES = FIND_TOOLS + '[ -z "$2" ] || printf %s "$2" >"$1"; cat "$1" 2>/dev/null; exit 0'
#: The verbs of flux that run programs
RUNNING_VERBS = (*FOLLOWING, *SUBMITTING)


def with_folder(kubernetes: Kubernetes, name: str, words: Sequence[str], folder: str, say: Say) -> list[str]:
    """Bring a folder to all nodes, and return a flux command whose program runs there, unless it names another one.

    Raises UsageError for a command that runs nothing, or for what is no folder; StateError, StatusError.
    """
    if not words or words[0] not in RUNNING_VERBS:
        what = f"`flux {words[0]}`" if words else "nothing"
        raise UsageError(f"--upload: {what} runs no program: give one of {', '.join(RUNNING_VERBS)}")
    check(folder)
    path = bring(kubernetes, find_ready_lead(kubernetes, name, say, waits=True), folder, say)
    return [words[0], f"--cwd={path}", *words[1:]]


def check(folder: str) -> None:
    """Raise UsageError for what is no folder."""
    if not Path(folder).is_dir():
        raise UsageError(f"--upload: {folder} is no folder here: give one")


def bring(kubernetes: Kubernetes, lead: Lead, folder: str, say: Say) -> str:
    """Bring a folder to all nodes that are up, and return its path there. Raises StateError; OSError for its files."""
    root = Path(folder).resolve()
    files = files_of(root)
    _warn(folder, files, say)
    place = f"{lead.home}/{UPLOADS}/{digest_of(files)}"
    path, note = f"{place}/{root.name or 'root'}", f"{place}.nodes"
    with refusals():
        pods = kubernetes.select("pods", broker_pods(lead.cluster))
    up = {pod.name for its in read_all_pods(pods).values() for pod in its.values() if pod.is_ready} | {lead.pod.name}
    known = set(_note(kubernetes, lead, note).split())
    if lead.pod.name not in known:
        copy_into(kubernetes, lead, folder, f"{place}/", say, only=files)
    if up - known - {lead.pod.name} and (code := distribute(kubernetes, lead, place, root.name, say)):
        raise StateError(f"{folder} is not on all nodes (exit code {code}): run it again")
    if up - known:
        _note(kubernetes, lead, note, " ".join(sorted(up)))
    return path


def files_of(root: Path) -> dict[str, Path]:
    """Return the files of a folder by their names in it: those that git does not ignore, where it is git's."""
    words = ["git", "-C", str(root), "ls-files", "-coz", "--exclude-standard"]
    try:
        # words, no shell
        listed = subprocess.run(words, capture_output=True, check=True).stdout.decode(errors="surrogateescape")  # noqa: S603
        names = [name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = [os.path.relpath(path, root) for path in root.rglob("*") if ".git" not in path.relative_to(root).parts]
    paths = {name: root / name for name in sorted(set(names))}
    return {name: path for name, path in paths.items() if path.is_symlink() or path.is_file()}


def digest_of(files: Mapping[str, Path]) -> str:
    """Return a text that is the same for the same files: their names, contents, and whether they are programs."""
    whole = hashlib.sha256()
    for name, path in files.items():
        if path.is_symlink():
            what = f"link {os.fsdecode(path.readlink())}"
        else:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            what = f"{'program' if os.access(path, os.X_OK) else 'file'} {content}"
        whole.update(f"{name}\0{what}\0".encode(errors="surrogateescape"))
    return whole.hexdigest()[:20]


def _warn(folder: str, files: Mapping[str, Path], say: Say) -> None:
    """Say what is large."""
    from rich.filesize import decimal  # noqa: PLC0415 - see terminal.py

    sizes = {name: path.lstat().st_size for name, path in files.items()}
    if (total := sum(sizes.values())) > LARGE_BYTES:
        largest = sorted(sizes, key=lambda name: -sizes[name])[:3]
        named = ", ".join(f"{name} ({decimal(sizes[name])})" for name in largest)
        say(f"warning: {folder} has {decimal(total)}, which all nodes get; the largest are {named}")


def _note(kubernetes: Kubernetes, lead: Lead, path: str, nodes: str = "") -> str:
    """Return which nodes have an upload, by their pods; with ``nodes``, note them. Raises StateError."""
    try:
        return kubernetes.kubectl(*lead.pod.exec_words(), "/bin/sh", "-c", NOTE_NODES, "sh", path, nodes)
    except CommandError as error:
        with refusals():
            raise ported(error) from None
