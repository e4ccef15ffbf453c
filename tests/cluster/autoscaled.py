"""A release with autoscaling, and its agent's access to the API server."""

import json
from pathlib import Path
from typing import Any

from kube import Kube

from tools.releases import Release

ON = {"enabled": True}
SCALES: dict[str, Any] = {"size": 2, "maxSize": 8, "autoscaling": ON, "containers": [{"command": "sleep inf"}]}


def agent(release: Release, folder: Path, job: str = "mc") -> Kube:
    """Return the agent's client, with a token such as the kubelet mounts."""
    config = json.loads(release.cluster.kubeconfig.read_text())["clusters"][0]["cluster"]
    (folder / "token").write_text(release.kubectl("create", "token", "mc-agent"))
    (folder / "ca.crt").write_text(Path(config["certificate-authority"]).read_text())
    return Kube(config["server"], release.namespace, job, folder)


def size(release: Release) -> int:
    spec = release.get("job")["spec"]
    assert spec["completions"] == spec["parallelism"]
    return int(spec["completions"])
