"""A person at a terminal, with MiniClusters on real pods: what a text says that is typed and shown, and what is."""

import json
import os
import re
import shlex
from pathlib import Path

import yaml
from screens import Seen, look

from tools import testbed
from tools.releases import FluxRelease

COLUMNS = 80
#: What the tests' cluster needs beside what a person types
VALUES = {"pod": {"terminationGracePeriodSeconds": 120}}
#: The end of what asks, and the rest of the line, which a person types
ASKS = re.compile(r".*?(:/# |\[y/N\]: )(.*)")
#: What differs each time, and what stands for it
VARIES = (
    (r"/\S*/charts/minicluster", "charts/minicluster"),
    (r"\b([ƒf])(?=\w*[0-9A-Z])[1-9A-HJ-NP-Za-km-z]{5,}\b", r"\g<1>5kZ7abc"),
    (r"\b(run|demo-\d)-[a-z0-9]{5}\b", r"\1-x2c4v"),
    (r"\b(?:\d+m)?\d+s\b", "4s"),
    (r"\b\d\d-\d\d \d\d:\d\d\b", "01-30 12:00"),
    (r"\[[|.]{20}\] \d+%", "[....................] 0%"),
    (r"\b[0-9.]+ of (\d+ [GM]iB|\d+ cores?)\b", r"0 of \1"),
)


class Person:
    """Has a home, and a kubeconfig whose current namespace is that of a release."""

    def __init__(self, release: FluxRelease, folder: Path) -> None:
        """Make the home and what the programs need in a folder."""
        self.release, self.home, self.images = release, folder / "home", folder / "images.json"
        self.home.mkdir()
        self.images.write_text(json.dumps(testbed.values_of(VALUES, {"cores": 2})))
        self.environment = {**release.cluster.env, "KUBECONFIG": _kubeconfig(release.namespace, folder)}

    def types(self, line: str, shown: str, namespace: str) -> tuple[str, int]:
        """Type a command, and answers as they stand in what is shown; return what is, and the exit code.

        ``namespace`` stands for the one of the release. JOB is the job that was submitted last.
        """
        words = shlex.split(line.replace(" --image ubuntu:noble", "").replace("1Gi", f"1Gi@{self.release.namespace}"))
        if words[1] in ("create", "run"):
            words[2:2] = ["-f", str(self.images)]
        if "JOB" in words:
            words[words.index("JOB")] = self._last_job()
        seen = look(words, self.environment, COLUMNS, folder=self.home, typed=_answers(shown))
        text = _whole(seen).replace(f" --values={self.images}", "").replace(f"@{self.release.namespace}", "")
        text = without_varying(text.replace(self.release.namespace, namespace))
        print(f"$ {line}", text, sep="\n", flush=True)
        return text, seen.code

    def _last_job(self) -> str:
        listed = self.release.cluster.output(
            "minicluster", "jobs", "demo", "-n", self.release.namespace, "-o", "json"
        ).splitlines()
        return str(max(map(json.loads, listed), key=lambda row: row["t_submit"])["id"])


def without_varying(text: str) -> str:
    """Return a text without what differs each time; the lines of the tasks of a job are in order."""
    for pattern, stands in VARIES:
        text = re.sub(pattern, stands, text)
    found = text.split("\n")
    hosts = [number for number, line in enumerate(found) if re.fullmatch(r"\S+-\d", line)]
    for number, host in zip(hosts, sorted(found[number] for number in hosts), strict=True):
        found[number] = host
    return "\n".join(found)


def squeezed(text: str) -> list[str]:
    """Return the lines of a text with single spaces: the widths of columns vary."""
    return [" ".join(line.split()) for line in text.split("\n")]


def _answers(shown: str) -> list[tuple[str, str]]:
    """Return what a person types after what; a shell may show its prompt more than once, so after the last word too."""
    found: list[tuple[str, str]] = []
    last = ""
    for line in shown.split("\n"):
        if asked := ASKS.fullmatch(line):
            found += [*([(last, "")] if last else []), (asked[1], f"{asked[2]}\n")]
            last = ""
        elif line:
            last = line.split()[-1]
    return found


def _whole(seen: Seen) -> str:
    """Return the last screen without the breaks that the terminal makes at its width."""
    written, text = seen.raw.decode(errors="replace"), ""
    for line, below in zip(seen.last, [*seen.last[1:], ""], strict=True):
        if len(line) == COLUMNS:
            text += line
        elif len(line) == COLUMNS - 1 and f"{line} {below}" in written:
            text += f"{line} "  # the screen has no blank at the end of a line
        else:
            text += f"{line}\n"
    return text.rstrip("\n")


def _kubeconfig(namespace: str, folder: Path) -> str:
    """Write a kubeconfig with a current namespace; return its path."""
    found = yaml.safe_load(Path(os.environ[testbed.KUBECONFIG]).read_text())
    current = next(one for one in found["contexts"] if one["name"] == found["current-context"])
    current["context"]["namespace"] = namespace
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(found))
    return str(path)
