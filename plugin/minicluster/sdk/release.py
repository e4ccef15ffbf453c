"""The SDK's calls of Helm: they install and remove a release with this package's chart and post-renderer."""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from minicluster.kube.port import KubePort
from minicluster.sdk.exceptions import ReleaseError


def install(kube: KubePort, release: str, values: Mapping[str, Any], chart: str = "") -> None:
    """Install the chart. Raises ReleaseError, ToolError."""
    from minicluster.release import helm  # noqa: PLC0415 - it reads YAML, and who only submits jobs has no release

    check_post_renderer()
    words = ("install", release, chart or str(helm.CHART), "--values", "-", "--post-renderer", "minicluster")
    kube.helm(*words, stdin=helm.values_text(values))


def uninstall(kube: KubePort, release: str, seconds: float) -> None:
    """Remove the release, if it is there, and wait until its pods are gone. Raises ToolError."""
    from minicluster.release import helm  # noqa: PLC0415

    helm.uninstall(kube, release, seconds, "--ignore-not-found")


def check_post_renderer() -> None:
    """Raise ReleaseError when Helm would not find this package; a notebook's PATH often lacks its environment."""
    if not shutil.which("minicluster"):
        folder = Path(sys.executable).parent
        raise ReleaseError(f"there is no minicluster in PATH, which Helm runs: put {folder} into PATH")
