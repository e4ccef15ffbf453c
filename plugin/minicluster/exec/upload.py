"""Brings a folder of this machine to all nodes, for a job that runs there, and the job's results back: `--upload DIR`.

Each state of a folder has a place of its own on the nodes, by the digest of its files: a job that waits finds what was
there at its submission, and a folder that has not changed is not sent again. Of one that has changed, the lead gets
what it has not got from an earlier state.
"""

import hashlib
import os
import subprocess
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from minicluster.cluster.find import broker_pods
from minicluster.cluster.lead import Lead
from minicluster.cluster.pods import FIND_TOOLS, Pod, read_all_pods
from minicluster.console import lines, streams
from minicluster.console.terminal import ok
from minicluster.errors import StateError, UsageError
from minicluster.exec.copy import copy_into
from minicluster.exec.run import run_program
from minicluster.exec.submitted import FOLLOWING, SUBMITTING
from minicluster.exec.uploaded import Brought, fetch_files, install, name_in
from minicluster.kube.kubectl import Kubernetes, ported
from minicluster.kube.tool import CommandError, reason, text
from minicluster.lead.ask import BrokenError, program_words, read, talk
from minicluster.lead.program import first_line, program_text
from minicluster.status.lookup import refusals

#: Where uploads are in the folder of our files on each node, which is a volume
UPLOADS = "uploads"
#: A folder that is larger gets a warning, with its largest files
LARGE_BYTES = 100_000_000
#: Seconds that the nodes have for their copies, and the bytes for which they have another one
COPIES_SECONDS, SECOND_BYTES = 300.0, 1_000_000
#: What packages have at most, mostly
PACKAGES_BYTES = 1 << 30
#: Seconds that nodes have to come up: those of a new MiniCluster, and pods that run
ALL_SECONDS, JOIN_SECONDS = 120.0, 20.0
#: Prints which nodes have an upload, and with a second word notes that. An upload that is used is a new one
NOTE_NODES = FIND_TOOLS + '[ -z "$2" ] || printf %s "$2" >"$1"; cat "$1" 2>/dev/null && touch "${1%.nodes}"; exit 0'
#: The verbs of flux that run programs
RUNNING_VERBS = (*FOLLOWING, *SUBMITTING)


class Upload(NamedTuple):
    """What goes along with a job, and comes back."""

    folder: str
    fetched: Sequence[str] = ()  #: patterns of files
    packages: str = ""  #: a file with packages of Python, "" for none

    def check(self) -> None:
        """Raise UsageError for what is no folder."""
        if not Path(self.folder).is_dir():
            raise UsageError(f"--upload: {self.folder} is no folder here: give one")

    def check_verb(self, words: Sequence[str]) -> None:
        """Raise UsageError for a flux command that runs nothing, or has nothing to fetch at its end."""
        what = f"`flux {words[0]}`" if words else "nothing"
        if not words or words[0] not in RUNNING_VERBS:
            raise UsageError(f"--upload: {what} runs no program: give one of {', '.join(RUNNING_VERBS)}")
        if self.fetched and words[0] not in FOLLOWING:
            raise UsageError(f"--fetch: {what} does not wait for its job: give one of {', '.join(FOLLOWING)}")

    def bring(self, kubernetes: Kubernetes, lead: Lead, say: streams.Say, *, waits: bool = False) -> Brought:
        """Bring the folder to all nodes that are up, or come up soon. Raises StateError; OSError for its files.

        With ``waits`` these are all pods that there are.
        """
        root = Path(self.folder).resolve()
        files = files_of(root)
        size = _warn(self.folder, files, say)
        states = {name: state_of(path) for name, path in files.items()}
        nodes = _Nodes(kubernetes, lead, say, waits=waits)
        place, name = f"{lead.home}/{UPLOADS}/{digest_of(states)}", root.name or "root"

        def send() -> None:
            if missing := _missing(kubernetes, lead, place, name, states):
                copy_into(kubernetes, lead, self.folder, f"{place}/", say, only=missing)

        nodes.have(place, name, size, send)
        brought = Brought(f"{place}/{name}", root, states)
        return brought._replace(environment=self._installed(nodes, brought)) if self.packages else brought

    def _installed(self, nodes: "_Nodes", brought: Brought) -> dict[str, str]:
        """Install packages on all nodes; return the variables of a job. Raises StateError, UsageError."""
        name = name_in(brought.root, self.packages)
        if name not in brought.states:
            raise UsageError(f"--with: git ignores {name}, so it is on no node: let git have it")
        digest = hashlib.sha256((brought.root / name).read_bytes()).hexdigest()[:20]
        place = f"{nodes.lead.home}/{UPLOADS}/with-{digest}"
        variables = install(nodes.kubernetes, nodes.lead, f"{place}/site", name, brought.path, nodes.say)
        nodes.have(place, "site", PACKAGES_BYTES, lambda: None)
        return variables

    def fetch(self, kubernetes: Kubernetes, lead: Lead, brought: Brought, say: streams.Say) -> None:
        """Bring the files that match a pattern, and are new or changed, back. Raises StateError; OSError."""
        if self.fetched:
            pods = pods_of(kubernetes, lead.cluster)
            fetch_files(kubernetes, lead.home, pods, brought, self.fetched, say)


class _Nodes:
    """The nodes that get folders."""

    def __init__(self, kubernetes: Kubernetes, lead: Lead, say: streams.Say, *, waits: bool) -> None:
        self.kubernetes, self.lead, self.say = kubernetes, lead, say
        self._seconds = ALL_SECONDS if waits else JOIN_SECONDS
        pods = pods_of(kubernetes, lead.cluster)
        self._pods = {host: pod.name for host, pod in pods.items() if waits or pod.phase == "Running"}

    def have(self, place: str, name: str, size: int, fill: Callable[[], None]) -> None:
        """Let all have a folder, which ``fill`` brings to the lead. A note says which have it. Raises StateError."""
        note, pods = f"{place}.nodes", {*self._pods.values(), self.lead.pod.name}
        known = set(_note(self.kubernetes, self.lead, note).split())
        if self.lead.pod.name not in known:
            fill()
        down = False
        if pods - known - {self.lead.pod.name}:
            words = _copies(self.lead, place, name, f"{self._seconds:g}", program_text("uploads"), *self._pods)
            told = _distribute(self.kubernetes, self.lead, name, words, COPIES_SECONDS + size / SECOND_BYTES)
            for line in told:
                self.say(line)
            down = bool(told)
        if pods - known and not down:
            _note(self.kubernetes, self.lead, note, " ".join(sorted(pods)))


def along(given: Mapping[str, Any]) -> Upload | None:
    """Return what the options of a command ask for; None for nothing. Raises UsageError."""
    if given["upload"] is not None:
        return Upload(given["upload"], given["fetched"], given["packages"] or "")
    if given["fetched"]:
        raise UsageError("--fetch needs --upload: it brings back what is new in that folder")
    if given["packages"]:
        raise UsageError("--with needs --upload: it is a file in that folder")
    return None


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


def state_of(path: Path) -> str:
    """Return what a file is: its content, and whether it is a program (lead/sent/uploads.py)."""
    if path.is_symlink():
        return f"link {os.fsdecode(path.readlink())}"
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{'program' if os.access(path, os.X_OK) else 'file'} {content}"


def digest_of(states: Mapping[str, str]) -> str:
    """Return a text that is the same for the same files."""
    text = "".join(f"{name}\0{state}\0" for name, state in states.items())
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:20]


def _warn(folder: str, files: Mapping[str, Path], say: streams.Say) -> int:
    """Say what is large; return the size."""
    from rich.filesize import decimal  # noqa: PLC0415 - see terminal.py

    sizes = {name: path.lstat().st_size for name, path in files.items()}
    if (total := sum(sizes.values())) > LARGE_BYTES:
        largest = sorted(sizes, key=lambda name: -sizes[name])[:3]
        named = ", ".join(f"{name} ({decimal(sizes[name])})" for name in largest)
        say(f"warning: {folder} has {decimal(total)}, which all nodes get; the largest are {named}")
    return total


def pods_of(kubernetes: Kubernetes, cluster: str) -> dict[str, Pod]:
    """Return the pods of a MiniCluster that have not ended, by their hosts. Raises StateError."""
    with refusals():
        pods = kubernetes.select("pods", broker_pods(cluster))
    return {
        "-".join(filter(None, (cluster, group, str(index)))): pod
        for group, its in read_all_pods(pods).items()
        for index, pod in its.items()
        if not pod.has_ended
    }


def _missing(kubernetes: Kubernetes, lead: Lead, place: str, name: str, states: Mapping[str, str]) -> list[str]:
    """Let the lead take what it has from an earlier upload; return the names of the other files. Raises StateError."""
    try:
        with refusals(), talk(kubernetes, lead, "uploads") as conversation:
            conversation.begin(None, threading.Event())
            conversation.say([{"place": place, "name": name, "states": states}])
            while True:
                for reply in conversation.replies():
                    if "missing" in reply:
                        missing: list[str] = reply["missing"]
                        return missing
    except BrokenError as error:
        raise StateError(f"{place}: {error}: run it again") from None


def _copies(lead: Lead, folder: str, name: str, *words: str) -> list[str]:
    """Return the words that bring a file or folder of the lead to the other nodes: see distribute.py."""
    return program_words(lead, folder, name, f"minicluster-{uuid.uuid4().hex}", streams.program(), *words)


def distribute(kubernetes: Kubernetes, lead: Lead, folder: str, name: str, say: streams.Say) -> int:
    """Bring a file or folder of the lead to all other nodes; return the exit code. Names nodes that are down."""
    hosts = pods_of(kubernetes, lead.cluster)
    code = run_program(kubernetes, lead, _copies(lead, folder, name, "0", "", *hosts), first_line("distribute"))
    if not code and len(hosts) > 1:
        say(ok("the other nodes have it, too"))
    return code


def _distribute(kubernetes: Kubernetes, lead: Lead, name: str, words: Sequence[str], seconds: float) -> list[str]:
    """Do the same in any thread, within some seconds; return what is told of nodes that are down.

    Raises StateError for a node that has not got it.
    """
    with refusals(), closing(kubernetes.run(lead.pod.name, lead.pod.runner, words, has_input=True)) as channel:
        channel.write(first_line("distribute").encode())
        said = read(channel, seconds)
    begin = f"{streams.program()}: "
    told = [line.removeprefix(begin) for line in lines.split(text(channel.stderr)) if line.startswith(begin)]
    if said is None or channel.exit_code:
        why = f"not within {seconds:.0f} s" if said is None else "; ".join(told) or reason(text(channel.stderr))
        raise StateError(f"{name} is not on all nodes: {why}: run it again")
    return told


def _note(kubernetes: Kubernetes, lead: Lead, path: str, nodes: str = "") -> str:
    """Return which nodes have an upload, by their pods; with ``nodes``, note them. Raises StateError."""
    try:
        return kubernetes.kubectl(*lead.pod.exec_words(), "/bin/sh", "-c", NOTE_NODES, "sh", path, nodes)
    except CommandError as error:
        with refusals():
            raise ported(error) from None
