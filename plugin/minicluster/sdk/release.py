"""The release of a MiniCluster: what Helm does for the SDK, with this package's chart and post-renderer."""

import math
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from minicluster import yamlio
from minicluster.errors import ToolError
from minicluster.kubectl import HELM_SECONDS, Kubernetes
from minicluster.release.helm import CHART
from minicluster.sdk.errors import ReleaseError
from minicluster.sdk.kube import Kube

#: What follows the post-renderer's message under Helm 4
HELMS = " [the rest of this line is Helm's]"
#: Seconds that Helm waits for the pods of a release that it removes
REMOVAL = 600


def install(kube: Kube, release: str, values: Mapping[str, Any], chart: str = "") -> None:
    """Install the chart. Raises ReleaseError."""
    _check_post_renderer()
    words = ("install", release, chart or str(CHART), "--values", "-", "--post-renderer", "minicluster")
    # Helm 4 takes no marker before an empty map
    _helm(kube, *words, stdin=yamlio.dump(dict(values)).decode().removeprefix("---"))


def resize(kube: Kube, release: str, size: int, chart: str = "") -> None:
    """Change the size. Raises ReleaseError."""
    _check_post_renderer()
    words = ("upgrade", release, chart or str(CHART), "--reuse-values", "--set", f"size={size}")
    _helm(kube, *words, "--post-renderer", "minicluster")


def uninstall(kube: Kube, release: str, seconds: float = REMOVAL) -> None:
    """Remove the release, if it is there, and wait until its pods are gone. Raises ReleaseError."""
    timeout = f"{max(1, math.ceil(seconds))}s"
    words = ("uninstall", release, "--ignore-not-found", "--cascade", "foreground", "--wait", "--timeout", timeout)
    _helm(kube, *words, seconds=seconds + HELM_SECONDS)


def _helm(kube: Kube, *words: str, stdin: str = "", seconds: float = HELM_SECONDS) -> None:
    try:
        Kubernetes(kube.context, kube.namespace).helm(*words, stdin=stdin, seconds=seconds)
    except ToolError as error:
        raise ReleaseError(str(error).partition(HELMS)[0]) from None


def _check_post_renderer() -> None:
    """Raise ReleaseError when Helm would not find this package; a notebook's PATH often lacks its environment."""
    if not shutil.which("minicluster"):
        folder = Path(sys.executable).parent
        raise ReleaseError(f"there is no minicluster in PATH, which Helm runs: put {folder} into PATH")
