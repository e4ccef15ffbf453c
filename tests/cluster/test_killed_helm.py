"""A burst is installed again after a Helm was killed in the midst of its install or removal."""

import base64
import gzip
import json
from typing import Any

import pytest
from minicluster.burst.install import How, upgrade
from minicluster.burst.plan import Burst
from minicluster.burst.root import BurstRequest
from minicluster.kube.kubectl import Kubernetes
from minicluster.release import helm, revisions
from support import BIN, Helm

from tools.releases import Release

VALUES: dict[str, Any] = {"size": 1, "maxSize": 3, "interactive": True, "containers": [{"image": "ubuntu:noble"}]}


def set_status(release: Release, status: str) -> None:
    """Let Helm's record of a release say that Helm has begun something and not ended it."""
    secret = release.get("secret", "sh.helm.release.v1.mc.v1")
    record = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(secret["data"]["release"]))))
    record["info"]["status"] = secret["metadata"]["labels"]["status"] = status
    data = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(record).encode())))
    secret["data"]["release"] = data.decode()
    release.kubectl("replace", "-f", "-", stdin=json.dumps(secret))


@pytest.mark.parametrize("status", ["pending-install", "uninstalling"])
def test_a_burst_is_installed_after_a_helm_that_was_killed(
    connected: Helm, release: Release, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    monkeypatch.setenv("HELM_BIN", str(BIN / connected.name))
    for name, value in connected.environment.items():
        monkeypatch.setenv(name, value)
    release.install(**VALUES)
    uid = release.get("job")["metadata"]["uid"]
    target: Any = Kubernetes(namespace=release.namespace)
    values = json.loads(target.helm("get", "values", "mc", "--output=json"))
    set_status(release, status)
    monkeypatch.setattr(revisions, "KILLED_SECONDS", 0.0)
    burst = Burst("mc", 1, 3, "mc-[0-2]", is_release=True)
    upgrade(BurstRequest(target, target, burst, target), {**values, "size": 2}, How(None, str(helm.CHART), (), 60.0))
    job = release.get("job")
    assert (job["spec"]["completions"], release.revisions()[-1]) == (2, (1, "deployed"))
    # what runs goes on unless it was being removed
    assert (job["metadata"]["uid"] == uid) == (status == "pending-install")
