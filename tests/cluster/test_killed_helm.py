"""A burst is installed again, or removed, after a Helm was killed in the midst of its install or removal."""

import base64
import gzip
import json
import subprocess
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from minicluster.burst import plan, removal
from minicluster.burst.install import How, upgrade
from minicluster.burst.plan import Burst
from minicluster.burst.root import BurstRequest
from minicluster.errors import ToolError
from minicluster.kube.kubectl import Kubernetes
from minicluster.release import helm, revisions
from quick import take_environment
from support import BIN, Helm

from tools.releases import Release

VALUES: dict[str, Any] = {"size": 1, "maxSize": 3, "interactive": True, "containers": [{"image": "ubuntu:noble"}]}

#: The burst, and what makes it one
BURST = Burst("mc", 1, 3, "mc-[0-2]", is_release=True)
LEAD = {"name": "root", "address": "192.0.2.1", "port": 8050, "size": 1}
JOINS = {"curveCertSecret": "mc-root-curve", "bursting": {"clusters": [{"name": "mc", "size": 3}], "leadBroker": LEAD}}


@pytest.fixture
def target(connected: Helm, release: Release, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the namespace for the package's own commands."""
    take_environment(monkeypatch, connected)
    return Kubernetes(namespace=release.namespace)


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
    target: Any, release: Release, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    release.install(**VALUES)
    uid = release.get("job")["metadata"]["uid"]
    values = json.loads(target.helm("get", "values", "mc", "--output=json"))
    set_status(release, status)
    monkeypatch.setattr(revisions, "KILLED_SECONDS", 0.0)
    upgrade(BurstRequest(target, target, BURST, target), {**values, "size": 2}, How(None, str(helm.CHART), (), 60.0))
    job = release.get("job")
    assert (job["spec"]["completions"], release.revisions()[-1]) == (2, (1, "deployed"))
    # what runs goes on unless it was being removed
    assert (job["metadata"]["uid"] == uid) == (status == "pending-install")


@pytest.mark.parametrize("root", ["root", "other"])
def test_what_a_killed_removal_has_left_goes_if_it_is_of_the_root(
    connected: Helm, target: Any, release: Release, root: str
) -> None:
    cluster: Any = SimpleNamespace(name=root)
    request = BurstRequest(cluster, target, BURST, target)
    target.kubectl("create", "-f", "-", stdin=json.dumps(plan.secret(cluster, BURST, "certificate")))
    release.install(size=1, maxSize=3, containers=VALUES["containers"], flux=JOINS)
    assert removal.own_status(request) == ("deployed" if root == "root" else "")
    # Helm waits for the Job
    hold = json.dumps({"metadata": {"finalizers": ["minicluster/held"]}})
    release.kubectl("patch", "job", "mc", "--type=merge", "-p", hold)
    words = (
        BIN / connected.name,
        "uninstall",
        "mc",
        "--namespace",
        release.namespace,
        "--cascade=foreground",
        "--wait",
    )
    with subprocess.Popen(words) as process:
        release.cluster.wait("its end", lambda: "deletionTimestamp" in release.get("job")["metadata"])
        process.kill()
    release.kubectl("patch", "job", "mc", "--type=merge", "-p", json.dumps({"metadata": {"finalizers": []}}))
    release.cluster.wait("its Job to go", lambda: not target.get("job", "mc"))
    assert removal.own_status(request) == ("uninstalling" if root == "root" else "")
    assert removal.is_left(request)
    removal.remove_rest(request, 60.0)
    assert not removal.is_left(request)
    with nullcontext() if root == "other" else pytest.raises(ToolError, match=helm.NOT_FOUND):
        target.helm("status", "mc")
