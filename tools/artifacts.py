"""Builds the files of a release: chart, plugin, packages, their pins, an SBOM, an OpenVEX file, and the checksums.

python -m tools.artifacts dist      builds into a new folder
python -m tools.artifacts dist -- --key NAME --keyring FILE [--passphrase-file FILE]
                                    Helm signs its archives too, with a provenance file beside each

The same commit gives the same bytes; only the plugin's archive has the user's name. The files' time is that of the
commit, or SOURCE_DATE_EPOCH, see https://reproducible-builds.org/specs/source-date-epoch/
"""

import argparse
import datetime
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

import tomli_w

from tools.release import ROOT, PublishError, version

#: What is known of weaknesses of dependencies
WEAKNESSES = Path(__file__).parent / "openvex.json"


def build(root: Path, target: Path, sign: Sequence[str] = ()) -> None:
    """Build everything that is published into a new folder. `sign` has Helm's options for signing.

    Helm names the archives of chart and plugin alike: the chart is in a folder of its own, all else can lie in one.

    Raises PublishError.
    """
    name = f"minicluster-{version(root)}"
    if target.exists():
        raise PublishError(f"{target} exists: remove it, or give another folder")
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or _commit_time(root)
    target.mkdir(parents=True)
    chart = root / "charts" / "minicluster"
    _run(epoch, "helm", "package", chart, "--destination", target / "chart", *(["--sign", *sign] if sign else []))
    _run(epoch, sys.executable, "-m", "build", "--no-isolation", root, "--outdir", target)
    with tempfile.TemporaryDirectory() as folder:
        _plugin(root, target, Path(folder), epoch, sign)
        _bill(root, target / f"{name}.cdx.json", Path(folder), epoch)
    (target / f"{name}.openvex.json").write_text(_exploitability(root, int(epoch)), encoding="utf-8")
    [wheel] = target.glob("*.whl")
    pins = (root / "plugin" / "requirements.txt").read_text(encoding="utf-8")
    own = f"{name.replace('-', '==', 1)} --hash=sha256:{_digest(wheel)}\n"
    (target / f"{name}-requirements.txt").write_text(pins + own, encoding="utf-8")
    files = sorted(path for path in target.rglob("*") if path.is_file())
    sums = [f"{_digest(path)}  {path.relative_to(target).as_posix()}\n" for path in files]
    (target / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")


def _commit_time(root: Path) -> str:
    command = ["git", "-C", str(root), "log", "-1", "--format=%ct"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PublishError(f"{root} is not a clone with a commit: set SOURCE_DATE_EPOCH to the time of its files")
    return done.stdout.strip()


def _plugin(root: Path, target: Path, folder: Path, epoch: str, sign: Sequence[str]) -> None:
    """Pack the plugin, from a copy whose files have one time and plain modes: Helm packs both as they are."""
    copy = folder / "minicluster"
    # Helm packs a link as a link, and plugin/minicluster/chart is a link
    shutil.copytree(root / "plugin", copy, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
        os.utime(path, (int(epoch), int(epoch)))
    _run(epoch, "helm", "plugin", "package", copy, "--destination", target, *(sign or ["--sign=false"]))


def _bill(root: Path, file: Path, folder: Path, epoch: str) -> None:
    """Write the bill of materials: the package, and what pip installs with it by the pins."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # CycloneDX reads no version that the build computes
    known = {key: project[key] for key in ("name", "description", "license", "dependencies")}
    described = folder / "pyproject.toml"
    described.write_text(tomli_w.dumps({"project": {**known, "version": version(root)}}), encoding="utf-8")
    environment = folder / "environment"
    _run(epoch, sys.executable, "-m", "venv", "--without-pip", environment)
    pip = (sys.executable, "-m", "pip", "--python", environment / "bin" / "python", "install", "--no-compile")
    _run(epoch, *pip, "--only-binary=:all:", "--require-hashes", "--requirement", root / "plugin" / "requirements.txt")
    # a test of the release validates it: that takes ten times as long as all else
    words = ("--no-validate", "--pyproject", described, "--output-reproducible", "--output-file", file)
    _run(epoch, sys.executable, "-m", "cyclonedx_py", "environment", *words, environment / "bin" / "python")


def _exploitability(root: Path, epoch: int) -> str:
    """Return what is known of weaknesses of the dependencies, as OpenVEX (github.com/openvex/spec)."""
    project = f"pkg:pypi/minicluster@{version(root)}"
    known = json.loads(WEAKNESSES.read_text(encoding="utf-8"))
    statements = [
        {**one, "products": [{"@id": project, "subcomponents": [{"@id": one.pop("subcomponent")}]}]} for one in known
    ]
    document = {
        "@context": "https://openvex.dev/ns/v0.2.0",
        "@id": f"urn:minicluster:openvex:{version(root)}",
        "author": "the minicluster authors",
        "timestamp": datetime.datetime.fromtimestamp(epoch, tz=datetime.UTC).isoformat(),
        "version": 1,
        "statements": statements,
    }
    return json.dumps(document, indent=2) + "\n"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _run(epoch: str, *command: object) -> None:
    """Run a command that gives all files this time. Raises PublishError."""
    words = [str(word) for word in command]
    env = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PublishError(f"{' '.join(words[:4])}: {' '.join((done.stderr or done.stdout).split())}")


def main() -> None:
    """Run the command of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("sign", nargs="*", help="options by which Helm signs")
    args = parser.parse_args()
    try:
        build(ROOT, args.folder, args.sign)
    except PublishError as error:
        sys.exit(f"release: {error}")


if __name__ == "__main__":
    main()
