"""Where the pods' tests run, and the types of their fixtures (conftest.py)."""

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.releases import FluxRelease
from tools.testbed import KUBECONFIG

IN_PODS = pytest.mark.skipif(KUBECONFIG not in os.environ, reason=f"{KUBECONFIG} names no cluster to run pods on")
#: For tests that mount a folder of the Kubernetes node.
NODE_FOLDER = pytest.mark.without("security", why="Pod Security refuses hostPath")
#: Installs a release: values, fields of the runner, then mode=, helm=, labels= of the namespace, options= of Helm.
Install = Callable[..., FluxRelease]
#: Skips the test where the image of its module lacks a tool.
Need = Callable[[str], None]


def kill_container(cluster: FluxRelease, index: int) -> None:
    """Kill all processes of a runner at once, as the kernel does with cgroup v2 when its memory is used up.

    Skips the test where they are not on this machine.
    """
    pod = next(pod for pod in cluster.pods(index) if pod["metadata"]["name"] == cluster.pod(index))
    name = pod["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"]
    found = next(one for one in pod["status"]["containerStatuses"] if one["name"] == name)
    container = found["containerID"].rpartition("/")[2]
    own = []
    for file in Path("/proc").glob("[0-9]*/cgroup"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            own += [int(file.parent.name)] if container in file.read_text() else []
    if not own:
        pytest.skip("the pods' processes are on another machine")
    for process in own:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def need_image(variable: str, what: str) -> tuple[str, list[pytest.MarkDecorator]]:
    """Return the image that a variable names, and the marks of a module whose tests need it."""
    image = os.environ.get(variable, "")
    return image, [IN_PODS, pytest.mark.skipif(not image, reason=f"{variable} names no image with {what}")]
