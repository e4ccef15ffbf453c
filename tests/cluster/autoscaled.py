"""A release with autoscaling, and its agent's access to the API server."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kube import Kube, KubeError
from placement import lacking
from scaled_job import pods

from tools.releases import Release

ON = {"enabled": True}
SCALES: dict[str, Any] = {"size": 2, "maxSize": 8, "autoscaling": ON, "containers": [{"command": "sleep inf"}]}


def agent(release: Release, folder: Path, job: str = "mc") -> Kube:
    """Return the agent's client, with a token such as the kubelet mounts."""
    config = json.loads(release.cluster.kubeconfig.read_text())["clusters"][0]["cluster"]
    (folder / "token").write_text(release.cluster.token(release.namespace, "mc-agent"))
    (folder / "ca.crt").write_text(Path(config["certificate-authority"]).read_text())
    return Kube(config["server"], release.namespace, job, folder)


def again(act: Callable[[], object]) -> None:
    """Act; again if a controller changed the object meanwhile, as the agent does at its next look."""
    for _ in range(4):
        try:
            act()
        except KubeError as error:
            if ": 409 " not in str(error):
                raise
        else:
            return
    act()


def change(pod: Kube, how: Callable[[Mapping[str, Any]], object]) -> None:
    """Change the Job as it is now."""
    again(lambda: how(pod.get_job()))


def resize(pod: Kube, new: int) -> None:
    change(pod, lambda job: pod.resize(job, new))


def gated(pod: Kube) -> int:
    """Return how many pods of the Job wait for Kueue's quota."""
    return lacking(pod.pods(), pods(pod.get_job())).gated


def size(release: Release) -> int:
    return int(release.get("job")["spec"]["completions"])
