"""The members of a tar archive that a copy writes or reads, and what tar in a pod says of them."""

import os
import re
import shutil
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, cast

from minicluster.console import lines
from minicluster.console.messages import counted, some
from minicluster.console.streams import Say
from minicluster.console.terminal import Progress, Share, ok
from minicluster.errors import StateError
from minicluster.kube import tool

#: The most names in a message
SHOWN_NAMES = 5
#: Seconds between two steps, and until the time that is left is estimated
SHOWN_SECONDS, SLOW_SECONDS = 0.25, 2.0
#: Seconds without a byte after which a stream is given up
STALLED_SECONDS = 120.0

#: What happens to a file that is read, in tar's words
FILE_CHANGED, FILE_REMOVED = "file changed as we read it", "file removed before we read it"


#: Such a change, in tar's words, and the name of the file
FileChange = tuple[str, str]


@dataclass
class Transfer:
    """A copy: what is copied, what is left out, and how far it is."""

    source: str
    target: str
    say: Say
    is_folder: bool
    total: int = 0  #: bytes that are to come; 0 if that is not known
    names: list[str] = field(default_factory=list)  #: of what is left out, neither a file nor a folder
    changed: list[FileChange] = field(default_factory=list)
    only: Set[str] | None = None  #: the members that are copied, and the folders above them; None for all
    files: int = 0
    size: int = 0  #: bytes of these files
    stall: str = ""  #: why the other end was killed
    _moved: float = field(default_factory=time.monotonic)
    _done: int = 0
    _begin: float = field(default_factory=time.monotonic)
    _shown: float = 0.0

    def takes(self, member: tarfile.TarInfo) -> bool:
        """Return whether a local file is copied, and count it then. There it belongs to the container's user."""
        if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
            return False
        self.count(member)
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return True

    def count(self, member: tarfile.TarInfo) -> None:
        """Count a member that is copied."""
        if not member.isdir():
            self.files += 1
            self.size += member.size
        if not self.is_folder:
            self.total = member.size

    def add(self, number: int) -> None:
        """Show that so many more bytes have come, unless that was shown just now."""
        self._done += number
        self._moved = now = time.monotonic()
        if now - self._shown >= SHOWN_SECONDS:
            self._shown = now
            self.say(Progress(f"copying {self.source} to {self.target}", "", self._share(now), is_quiet=True))

    @contextmanager
    def ends_when_stalled(self, process: "subprocess.Popen[bytes]") -> Iterator[None]:
        """Kill the process at the other end of the stream when no byte moves for long: a write to it would not end."""
        is_over = threading.Event()

        def watch() -> None:
            while not is_over.wait(min(1.0, STALLED_SECONDS / 4)):
                if time.monotonic() - self._moved > STALLED_SECONDS:
                    self.stall = f"no byte came through for {STALLED_SECONDS:g} s: run it again"
                    process.kill()

        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            is_over.set()

    def _share(self, now: float) -> Share | None:
        if not self.total:
            return None
        took, done = now - self._begin, min(self._done, self.total)
        end = now + took * (self.total - done) / done if done and took > SLOW_SECONDS else None
        return Share(done, self.total, end)

    def tell(self) -> None:
        """Say what was copied, and name some of what was left out."""
        from rich.filesize import decimal  # noqa: PLC0415 - see terminal.py

        if self.names:
            self.say(f"left out, because they are neither files nor folders: {some(self.names, SHOWN_NAMES)}")
        for what in dict.fromkeys(what for what, _ in self.changed):
            names = [name for its, name in self.changed if its == what]
            self.say(f"warning: {what}: {some(names, SHOWN_NAMES)}")
        files = f"{counted(self.files, 'file')}, " if self.is_folder else ""
        self.say(ok(f"copied {self.source} to {self.target}, {files}{decimal(self.size)}"))


class Counted:
    """A stream whose bytes a transfer counts."""

    def __init__(self, stream: IO[bytes], transfer: Transfer) -> None:
        self._stream, self._transfer = stream, transfer

    def write(self, data: bytes) -> int:
        """Write, and count."""
        written = self._stream.write(data)
        self._transfer.add(len(data))
        return written

    def read(self, size: int = -1) -> bytes:
        """Read, and count."""
        data = self._stream.read(size)
        self._transfer.add(len(data))
        return data


def among(name: str, only: Iterable[str] | None) -> Set[str] | None:
    """Return the members of a folder's archive if only some of its files are to be there; None for all."""
    if only is None:
        return None
    paths = [PurePosixPath(name, each) for each in only]
    return {str(path) for path in paths} | {str(above) for path in paths for above in path.parents}


def add(archive: tarfile.TarFile, path: Path, name: str, transfer: Transfer, *, is_top: bool = True) -> None:
    """Add a local file or folder to an archive. What is below it may be written or removed meanwhile."""
    try:
        member = archive.gettarinfo(path, name)
        below = sorted(path.iterdir()) if member and member.isdir() else []
        file = path.open("rb") if member and member.isreg() else None
    except FileNotFoundError:
        if is_top:
            raise
        transfer.changed.append((FILE_REMOVED, name))
        return
    if not (member and transfer.takes(member)):
        transfer.names.append(name)
    elif file:
        with file:
            archive.addfile(member, cast("IO[bytes]", _Padded(file)))
            end = os.fstat(file.fileno())
        if (end.st_size, end.st_mtime) != (member.size, member.mtime):
            transfer.changed.append((FILE_CHANGED, name))
    else:
        archive.addfile(member)
    for each in below:
        if transfer.only is None or f"{name}/{each.name}" in transfer.only:
            add(archive, each, f"{name}/{each.name}", transfer, is_top=False)


class _Padded:
    """A file that goes on with zeros where it has become shorter, as GNU tar writes it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        """Return so many bytes."""
        return self._file.read(size).ljust(size, b"\0")


def extract(archive: tarfile.TarFile, member: tarfile.TarInfo, above: int, goal: Path, transfer: Transfer) -> None:
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
        transfer.count(member)
    else:
        transfer.names.append(member.name)


def _below(goal: Path, name: str, above: int) -> Path:
    parts = PurePosixPath(name).parts
    if ".." in parts or name.startswith("/"):
        raise StateError(f"the pod's tar names {name}, which is outside of what was asked for: look at its image")
    return goal.joinpath(*parts[above:])


#: What explains no failure
NOTES = re.compile(
    r"\S*tar: (Removing leading |Exiting with failure status|Error is not recoverable|error exit delayed )"
)
#: What GNU tar says of a file that is written or removed meanwhile, and busybox of one that is removed; the exit code
#: is then 1, and the archive whole
CHANGED = re.compile(
    r"\S*tar: (?:can't open ')?(?P<name>.*?)'?: "
    r"(?P<what>file (?:changed as|removed before) we read it|file shrank by \d+ bytes; padding with zeros|"
    r"no such file or directory)",
    re.IGNORECASE,
)
CHANGED_CODE = 1
#: What busybox says of a file that gets shorter: it stops there
SHORT, SHRANK = re.compile(r"\S*tar: short read"), "a file became shorter while tar read it: run it again"


def read_failure(said: bytes, code: int) -> tuple[list[FileChange], str]:
    """Return the files that changed while tar read them; none, and the reason, "" if unknown, when it failed."""
    told = [line for line in lines.split(tool.reason(tool.text(said))) if not NOTES.match(line)]
    changes = [CHANGED.fullmatch(line) for line in told]
    if code == CHANGED_CODE and tool.COMMAND_FAILED.search(said) and all(changes):
        return [(each["what"].lower(), each["name"]) for each in changes if each], ""
    left = [line for line, match in zip(told, changes, strict=True) if not match] or told
    why = SHRANK if any(map(SHORT.fullmatch, left)) else "\n".join(left)
    return [], f"{why}: ask for a Role that allows it" if tool.CommandError("kubectl exec", why).is_forbidden else why
