"""A user with an empty home, and the archives of a release, for tests that install as a new user does.

Nothing is downloaded: pip finds the wheels that `make setup` keeps.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from support import BIN, ROOT, Done

from tools import artifacts, release

VERSION = release.version(ROOT)
WHEELS = Path(sys.prefix) / "wheels"
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(WHEELS)}
#: The programs that the plugin's scripts may use beside Python.
PROGRAMS = ("sh", "dirname", "tail", "cat", "rm", "env")
#: A Python that copies an environment, by links to its files, instead of making one: that takes more time than all else
#: of an install
COPYING = """#!/bin/sh
case "$1 $2" in "-m venv") exec '{cp}' -Rl '{environment}' "$3" ;; esac
exec '{python}' "$@"
"""


class User:
    """A user with an empty home and few programs."""

    def __init__(self, home: Path, *programs: str, helm: str = "helm") -> None:
        """Make the home with a few programs; ``python3`` has no packages; ``helm`` is the Helm that this user runs."""
        self.home = home
        self.helm = helm
        self.bin = home / "bin"
        self.bin.mkdir(parents=True, exist_ok=True)
        for name in (*PROGRAMS, *programs):
            found = sys._base_executable if name == "python3" else shutil.which(name)
            assert found
            (self.bin / name).symlink_to(found)
        self.env = {"HOME": str(home), "PATH": str(self.bin), **OFFLINE}
        self.plugins = home / ".local" / "share" / "helm" / "plugins"

    def copies(self, environment: Path) -> None:
        """Let `python3 -m venv` copy this environment."""
        python = self.bin / "python3"
        python.unlink()
        text = COPYING.format(cp=shutil.which("cp"), environment=environment, python=sys._base_executable)
        python.write_text(text)
        python.chmod(0o755)

    def run(self, *args: object) -> Done:
        """Run Helm, whatever its exit code."""
        command = [BIN / self.helm, *map(str, args)]
        done = subprocess.run(
            command, env=self.env, cwd=self.home, capture_output=True, text=True, check=False, timeout=120
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def ok(self, *args: object) -> str:
        """Return what Helm prints; it must succeed."""
        done = self.run(*args)
        assert done.code == 0, done.both
        return done.out

    def left(self) -> list[str]:
        """Return what is in Helm's folder of plugins."""
        return sorted(path.name for path in self.plugins.iterdir()) if self.plugins.exists() else []


def make_environment(folder: Path) -> Path:
    """Make an environment for users who copy it, with the compiled pip of .venv."""
    subprocess.run([sys._base_executable, "-m", "venv", "--without-pip", folder], check=True)
    for path in Path(sysconfig.get_path("purelib")).glob("pip*"):
        if path.name == "pip" or re.fullmatch(r"pip-[\d.]+\.dist-info", path.name):
            shutil.copytree(path, next(folder.glob("lib/python*/site-packages")) / path.name)
    return folder


def need_wheels() -> None:
    """Skip where there are no wheels to install from."""
    if not WHEELS.is_dir():
        pytest.skip(f"{WHEELS} is missing: run `make setup`")


def build(target: Path, *sign: str, root: Path = ROOT) -> Path:
    """Build everything that is released into a new folder, with these options of Helm for signing."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**OFFLINE, "SOURCE_DATE_EPOCH": "1700000000"}.items():
            patch.setenv(name, value)
        patch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
        artifacts.build(root, target, sign)
    return target
