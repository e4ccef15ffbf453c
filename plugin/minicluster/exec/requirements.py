"""Installs the Python packages that a folder asks for, once, on the lead: `--with requirements.txt`, or a uv.lock."""

import hashlib
from pathlib import Path

from minicluster.cluster.lead import Lead
from minicluster.cluster.pods import FIND_TOOLS
from minicluster.console import lines
from minicluster.console.streams import Say
from minicluster.console.terminal import Progress
from minicluster.errors import StateError, UsageError
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.tool import CommandError

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


def digest_of_file(path: Path) -> str:
    """Return a text that is the same for the same packages."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:20]


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
    except CommandError as error:
        raise StateError(f"{name} is not installed: {error.reason}") from None
    return dict(line.split("=", 1) for line in lines.split(told)[-2:])
