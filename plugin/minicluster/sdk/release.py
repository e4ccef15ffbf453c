"""The SDK's calls of Helm: they install, resize and remove a release with this package's chart and post-renderer."""

import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from minicluster.errors import SpecError, ToolError
from minicluster.kubectl import Kubernetes
from minicluster.release import helm, oneshot
from minicluster.release import resize as by_helm
from minicluster.sdk.client import KubeClient
from minicluster.sdk.exceptions import ReleaseError

#: Seconds that Helm waits for the pods of a release that it removes
REMOVAL = helm.REMOVAL


def install(kube: KubeClient, release: str, values: Mapping[str, Any], chart: str = "") -> None:
    """Install the chart. Raises ReleaseError."""
    _check_post_renderer()
    words = ("install", release, chart or str(helm.CHART), "--values", "-", "--post-renderer", "minicluster")
    with _errors():
        _kubernetes(kube).helm(*words, stdin=helm.values_text(values))


@contextmanager
def installed_once(kube: KubeClient, asked: oneshot.Oneshot) -> Iterator[None]:
    """Install the chart for one run, and remove at the end what there is of it. Raises ReleaseError."""
    _check_post_renderer()
    kubernetes = _kubernetes(kube)
    with _errors():
        words = oneshot.install_words(asked)
    try:
        with _errors():
            oneshot.install(kubernetes, asked, words)
        yield
    finally:
        with _errors():
            if oneshot.is_there(kubernetes, asked):
                oneshot.remove(kubernetes, asked)


def resize(kube: KubeClient, release: str, size: int, group: str = "") -> None:
    """Change the size, or that of a group. Raises ReleaseError."""
    _check_post_renderer()
    with _errors():
        by_helm.resize(_kubernetes(kube), release, size, group)


def uninstall(kube: KubeClient, release: str, seconds: float = REMOVAL) -> None:
    """Remove the release, if it is there, and wait until its pods are gone. Raises ReleaseError."""
    with _errors():
        helm.uninstall(_kubernetes(kube), release, seconds, "--ignore-not-found")


def _kubernetes(kube: KubeClient) -> Kubernetes:
    return Kubernetes(kube.context, kube.namespace)


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except ToolError as error:
        raise ReleaseError(helm.explain(error)) from None
    except SpecError as error:
        raise ReleaseError(str(error)) from None


def _check_post_renderer() -> None:
    """Raise ReleaseError when Helm would not find this package; a notebook's PATH often lacks its environment."""
    if not shutil.which("minicluster"):
        folder = Path(sys.executable).parent
        raise ReleaseError(f"there is no minicluster in PATH, which Helm runs: put {folder} into PATH")
