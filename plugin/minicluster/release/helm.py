"""Helm, as a program that is found and run, and the chart that the package carries."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from minicluster.errors import ToolError

#: In a clone the repository's own, by a link.
CHART = (Path(__file__).parent.parent / "chart").resolve()
#: The oldest Kubernetes that the chart supports: its manifests suit any later one.
OLDEST = "1.27"
#: A release's name, as Helm checks it (pkg/chart/common/util, ValidateReleaseName).
NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
MAX_NAME = 53


def version() -> str:
    """Return the version of the chart, which is that of the package and of the plugin."""
    lines = (CHART / "Chart.yaml").read_text(encoding="utf-8").splitlines()
    return next(line.removeprefix("version:").strip() for line in lines if line.startswith("version:"))


def program() -> str:
    """Return the path of Helm. Raises ToolError when it is missing."""
    found = shutil.which(os.environ.get("HELM_BIN") or "helm")
    if found is None:
        where = os.environ.get("HELM_BIN")
        missing = f"HELM_BIN is {where}: there is no such program" if where else "there is no helm in PATH"
        raise ToolError(f"{missing}: install Helm 3.14 or later, or Helm 4, or set HELM_BIN to its path")
    return found


def problem(said: str, code: int) -> str:
    """Return what Helm says of an error; Helm 4 has it in its log, too."""
    _, _, error = f"\n{said}".partition("\nError: ")
    return error.strip() or said.strip() or f"exit code {code}"


def run(*arguments: str) -> bytes:
    """Return what Helm prints; its warnings go to stderr. Raises ToolError when it is missing or fails."""
    done = subprocess.run([program(), *arguments], capture_output=True, check=False)  # noqa: S603 - no shell
    said = done.stderr.decode(errors="replace")
    if done.returncode:
        raise ToolError(f"helm {arguments[0]}: {problem(said, done.returncode)}")
    with suppress(OSError):
        sys.stderr.write(said)
    return done.stdout


@dataclass(frozen=True)
class Release:
    """What is rendered: names, a chart, and arguments of Helm that give its values."""

    name: str
    namespace: str
    values: Sequence[str]
    chart: str = str(CHART)
    kube_version: str | None = None  #: the cluster's, whose abilities the chart then uses; any when not given


def template(release: Release) -> bytes:
    """Return what `helm template` makes of a release, the same with any Helm and without a cluster.

    Helm takes an offline cluster for one of its own version; here it is the oldest that the chart supports, or the
    one that was asked for. Raises ToolError.
    """
    if len(release.name) > MAX_NAME or not re.fullmatch(NAME, release.name):
        raise ToolError(
            f"{release.name!r} can't be a release's name: use a-z, 0-9, - and ., at most {MAX_NAME} characters, "
            "the first and the last a letter or digit"
        )
    version = ["--kube-version", release.kube_version or OLDEST]
    abilities = ["--api-versions", "batch/v1/Job"] if release.kube_version else []
    place = [f"--namespace={release.namespace}", "--", release.name, release.chart]
    return run("template", "--skip-tests", *version, *abilities, *release.values, *place)
