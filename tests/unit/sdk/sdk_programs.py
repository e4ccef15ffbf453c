"""Runs programs that use the SDK, beside stand-ins for kubectl and for what runs on the lead."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from forks import forked
from live_kubectl import Kubectl


class Programs:
    """A place for programs, and the lead's notes of what they ask."""

    def __init__(self, folder: Path) -> None:
        self.kubectl, self._asked = Kubectl(folder), folder / "asked-of-lead"
        self.kubectl.flux(
            f"case $* in *python*) exec {sys.executable} {Path(__file__).with_name('lead_program.py')} ;; esac"
        )
        files = {"FREE": str(folder / "free"), "ASKED": str(self._asked)}
        self.environment = {**self.kubectl.environment, **files}

    def start(self, text: str, *words: str) -> "subprocess.Popen[str]":
        """Start a program."""
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", text, *words]
        return subprocess.Popen(command, env=self.environment, text=True, stdout=pipe, stderr=pipe)

    def run_fork(self, text: str, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a program to its end, where how Python ends is not the question."""
        done = forked(text, *words, module="sdk_program", env=self.environment)
        return subprocess.CompletedProcess([], done.code, done.out, done.err)

    def run(self, text: str, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a program to its end."""
        with self.start(text, *words) as process:
            out, err = process.communicate(timeout=100)
        return subprocess.CompletedProcess([], process.returncode, out, err)

    def asked(self) -> list[dict[str, Any]]:
        """Return the requests that the lead got."""
        return [json.loads(line) for line in self._asked.read_text().splitlines()] if self._asked.exists() else []
