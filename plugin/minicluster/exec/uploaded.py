"""A folder on the nodes: what a job has made there is brought back, and the Python packages it asks for are installed.

`--fetch PATTERN`, and `--with requirements.txt` or a uv.lock.
"""

import hashlib
import shutil
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, cast

from minicluster.cluster.lead import Lead
from minicluster.cluster.pods import FIND_TOOLS, Pod
from minicluster.console import lines
from minicluster.console.messages import counted
from minicluster.console.streams import Say
from minicluster.console.terminal import Progress, ok
from minicluster.errors import StateError, UsageError
from minicluster.exec.archive import STALLED_SECONDS
from minicluster.exec.copy import BROKEN
from minicluster.kube import tool
from minicluster.kube.kubectl import Kubernetes
from minicluster.lead.program import BOOT, first_line
from minicluster.status.lookup import refusals

#: The bytes that a node may have
MOST_BYTES = 1 << 30
#: Nodes that are asked at once; bytes of an archive that are kept in memory
PARALLEL_NODES, MEMORY_BYTES = 8, 1 << 22
#: What nobody fetches: git would run it
GIT = ".git"


class Brought(NamedTuple):
    """A folder that is on the nodes."""

    path: str  #: there
    root: Path  #: here
    states: Mapping[str, str]  #: of its files, by their names (upload.py)
    environment: Mapping[str, str] = {}  #: variables of a job that uses its packages

    @property
    def options(self) -> list[str]:
        """Return the options of a flux command whose program runs there."""
        # Flux expands variables in values
        variables = [f"--env={name}={value.replace('$', '$$')}" for name, value in self.environment.items()]
        return [f"--cwd={self.path}", *variables]


def fetch_files(  # noqa: PLR0913, PLR0917 - from where, what, and to where
    kubernetes: Kubernetes, home: str, pods: Mapping[str, Pod], brought: Brought, patterns: Sequence[str], say: Say
) -> None:
    """Bring the files that a job has made or changed, and that match a pattern, from all nodes to the local folder.

    ``pods`` are by their hosts, ``home`` is our folder there. Where nodes have different files of a name, those of the
    later ones end with the host. Raises StateError; OSError for the local files.
    """
    fetched, folder = _Fetched(brought, say), brought.path
    words = [f"{home}/bin/flux", "python", "-c", BOOT, folder, str(MOST_BYTES), *patterns]
    there = {host: pod for host, pod in pods.items() if pod.is_ready or pod.phase == "Running"}

    with ThreadPoolExecutor(PARALLEL_NODES) as pool:
        archives = pool.map(lambda pod: _archive_of(kubernetes, pod, words), there.values())
        for host, archive in zip(there, archives, strict=True):
            with archive, tarfile.open(fileobj=archive, mode="r:") as members:
                for member in members:
                    if member.isfile():
                        fetched.take(members, member, host)
    size = counted(len(fetched.written), "file")
    say(ok(f"fetched {size} to {brought.root}") if fetched.written else f"nothing new matches {', '.join(patterns)}")


def _archive_of(kubernetes: Kubernetes, pod: Pod, words: Sequence[str]) -> IO[bytes]:
    """Return the files of a node as an archive. Raises StateError."""
    with ExitStack() as stack, refusals():
        file = stack.enter_context(tempfile.SpooledTemporaryFile(MEMORY_BYTES))
        channel = stack.enter_context(closing(kubernetes.run(pod.name, pod.runner, words, has_input=True)))
        channel.write(first_line("results").encode())
        while channel.wait(None, STALLED_SECONDS):
            data = channel.read()
            if data is None:
                break
            file.write(data)
            if file.tell() > 2 * MOST_BYTES:
                raise StateError(f"{pod.name}: its files are larger than they were: fetch fewer")
        if channel.exit_code is None:
            raise StateError(f"{pod.name}: no byte came through for {STALLED_SECONDS:g} s: run it again")
        if channel.exit_code:
            why = tool.reason(tool.text(channel.stderr)) or BROKEN
            raise StateError(f"{pod.name}: {why}: fetch fewer")
        file.seek(0)
        stack.pop_all()
        channel.close()
        return file


class _Fetched:
    """The files that have come."""

    def __init__(self, brought: Brought, say: Say) -> None:
        self._brought, self._say = brought, say
        self.written: set[Path] = set()

    def take(self, archive: tarfile.TarFile, member: tarfile.TarInfo, host: str) -> None:
        """Write a file, unless it is as it was brought, or refused. Raises OSError."""
        name, digest = member.name, _digest(archive.extractfile(member))
        if self._was(name, digest):
            return
        parts = PurePosixPath(name).parts
        target = self._brought.root.joinpath(*parts)
        above = [path for path in target.parents if path.is_relative_to(self._brought.root)]
        is_inside = bool(parts) and not {"..", "/", GIT} & {*parts}
        if not is_inside or target.is_dir() or any(path.is_symlink() for path in (target, *above[:-1])):
            self._say(f"{host}: {name} is not fetched: that could write outside of {self._brought.root}, or into {GIT}")
            return
        here = _digest(target.open("rb")) if target.exists() else ""
        if here == digest:
            return
        # what another node has, and what a person has changed meanwhile, stays
        if here and (target in self.written or (name in self._brought.states and not self._was(name, here))):
            target = target.with_name(f"{target.name}.{host}")
            self._say(f"{name} of {host} is another one than the one here: it is {target.name}")
        self.written.add(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
            shutil.copyfileobj(cast("IO[bytes]", archive.extractfile(member)), file)
        # beside it before: a link of this name is replaced, not followed
        Path(file.name).chmod(member.mode & 0o755 | 0o600)
        Path(file.name).replace(target)

    def _was(self, name: str, digest: str) -> bool:
        """Return whether a file was brought with this content."""
        return self._brought.states.get(name, "").endswith(f" {digest}")


def _digest(file: IO[bytes] | None) -> str:
    assert file  # one of a member that is a file
    with file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # it can be read


#: Seconds that an installation has
INSTALL_SECONDS = 1800.0
#: Installs the packages of a file in a folder to another one, unless they are there; prints the variables of a job that
#: uses them. By uv of the image or the view, else by the image's pip
INSTALL_PACKAGES = (
    FIND_TOOLS
    + """\
target=$1 file=./$2 new=$1.$$ flux=$4
cd "$3" || exit
end() { echo "$1" >&2; exit 3; }
if [ ! -e "$target.installed" ]; then
  python=$(command -v python3 || command -v python) || end 'the image has no Python: use one that has it'
  uv=$(command -v uv || PATH=/opt/views/view/bin command -v uv) || uv=
  UV_CACHE_DIR=${UV_CACHE_DIR:-${target%/*/*}/uv-cache}
  export UV_CACHE_DIR
  mkdir -p "$new" || exit
  case $uv${file##*/} in
  uv.lock) end 'a uv.lock needs uv, which neither the image nor the view has: use an image that has it' ;;
  *uv.lock)
    set -- --quiet --frozen --no-emit-project --project "${file%/*}" --output-file "$target.txt"
    "$uv" export "$@" >/dev/null || exit
    file=$target.txt
    ;;
  esac
  if [ "$uv" ]; then
    "$uv" pip install --quiet --python "$python" --target "$new" --requirement "$file"
  elif "$python" -m pip --version >/dev/null 2>&1; then
    "$python" -m pip install --quiet --disable-pip-version-check --no-input --target "$new" --requirement "$file"
  else
    end 'neither the image nor the view has uv, and the image has no pip: use an image with one of them'
  fi >/dev/null || exit
  rm -rf "$target" && mv "$new" "$target" && : >"$target.installed" || exit
fi
# jobs find flux there
path=$("$flux" env /bin/sh -c 'printf %s "$PATH"') || exit
printf '%s\\n' "PYTHONPATH=$target${PYTHONPATH:+:$PYTHONPATH}" "PATH=$target/bin:$path"
"""
)


def name_in(folder: Path, file: str) -> str:
    """Return the name in a folder of a file that is named from there, or from here. Raises UsageError."""
    for path in ((folder / file).resolve(), Path(file).resolve()):
        if path.is_file() and path.is_relative_to(folder):
            return str(path.relative_to(folder))
    raise UsageError(f"--with: there is no {file} in the folder of --upload: put it there")


def install(kubernetes: Kubernetes, lead: Lead, target: str, name: str, folder: str, say: Say) -> dict[str, str]:  # noqa: PLR0913, PLR0917 - where, what, to where
    """Install the packages of a file in a folder on the lead, unless they are there; return a job's variables.

    Raises StateError.
    """
    say(Progress(f"installing {name} on the lead", is_quiet=True))
    words = (
        *lead.pod.exec_words(),
        "/bin/sh",
        "-c",
        INSTALL_PACKAGES,
        "sh",
        target,
        name,
        folder,
        f"{lead.home}/bin/flux",
    )
    try:
        told = kubernetes.kubectl(*words, seconds=INSTALL_SECONDS)
    except tool.CommandError as error:
        raise StateError(f"{name} is not installed: {error.reason}") from None
    return dict(line.split("=", 1) for line in lines.split(told)[-2:])
