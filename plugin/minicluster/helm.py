"""Helm, as a program that is found and run, and the chart that the package carries."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from minicluster.errors import ToolError

#: In a clone the repository's own, by a link.
CHART = (Path(__file__).parent / "chart").resolve()
#: The oldest Kubernetes that the chart supports: its manifests suit any later one.
OLDEST = "1.27"


def version() -> str:
    """Return the version of the chart, which is that of the package and of the plugin."""
    lines = (CHART / "Chart.yaml").read_text(encoding="utf-8").splitlines()
    return next(line.removeprefix("version:").strip() for line in lines if line.startswith("version:"))


def run(*arguments: str) -> bytes:
    """Return what Helm prints; its warnings go to stderr. Raises ToolError when it is missing or fails."""
    program = shutil.which(os.environ.get("HELM_BIN") or "helm")
    if program is None:
        where = os.environ.get("HELM_BIN")
        missing = f"HELM_BIN is {where}: there is no such program" if where else "there is no helm in PATH"
        raise ToolError(f"{missing}: install Helm 3.14 or later, or Helm 4, or set HELM_BIN to its path")
    done = subprocess.run([program, *arguments], capture_output=True, check=False)  # noqa: S603 - no shell
    said = done.stderr.decode(errors="replace")
    if done.returncode:
        raise ToolError(f"helm {arguments[0]}: {said.removeprefix('Error: ').strip() or f'exit {done.returncode}'}")
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
    version = ["--kube-version", release.kube_version or OLDEST]
    abilities = ["--api-versions", "batch/v1/Job"] if release.kube_version else []
    place = [release.name, release.chart, f"--namespace={release.namespace}"]
    return run("template", *place, "--skip-tests", *version, *abilities, *release.values)
