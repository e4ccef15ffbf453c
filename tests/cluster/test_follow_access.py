"""The rights of the Deployment that follows the queue, and that the API server admits it."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from simulated import new_namespace
from support import ROOT

from tools import tenant
from tools.releases import Release

pytestmark = pytest.mark.any_helm

VALUES: dict[str, Any] = {
    "size": 1,
    "groups": [{"name": "gpu", "size": 0, "cores": 1}],
    "flux": {
        "bursting": {
            "clusters": [{"name": "b0", "size": 2}],
            "expose": {"type": "NodePort"},
            "follow": {"image": "follow:1", "bursts": ["b0:0-2@elsewhere"]},
        }
    },
}
RULES = [
    "jobs.batch [] [mc-gpu] [get]",
    "jobs.batch [] [mc] [get]",
    "pods [] [] [get list]",
    "pods/exec [] [] [create]",
    "secrets [] [mc-curve] [get]",
    "services [] [mc-lead] [get]",
]


def rules(release: Release, account: str) -> set[str]:
    """Return the rights of an account in the release's namespace."""
    user = f"--as=system:serviceaccount:{release.namespace}:{account}"
    lines = release.kubectl("auth", "can-i", "--list", "--no-headers", user).splitlines()
    return {" ".join(line.split()) for line in lines}


def install_role() -> dict[str, Any]:
    """Return the Role of docs/how-to/give-users-rights.md that installs."""
    page = (ROOT / "docs/how-to/give-users-rights.md").read_text(encoding="utf-8")
    roles = map(yaml.safe_load, re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    found: dict[str, Any] = next(role for role in roles if role["metadata"]["name"] == "minicluster-install")
    return found


def test_the_follower_has_these_rights_and_no_others(release: Release) -> None:
    release.install(**VALUES)
    assert sorted(rules(release, "mc-follow") - rules(release, "default")) == RULES
    release.upgrade(**{**VALUES, "flux": {"bursting": {**VALUES["flux"]["bursting"], "follow": {"bursts": []}}}})
    assert rules(release, "mc-follow") == rules(release, "default"), "it may change on a live root"
    assert release.items("deployments,serviceaccounts,roles,rolebindings") == []


def test_the_rights_of_the_follower_are_enough_for_burst_follow(release4: Release, tmp_path: Path) -> None:
    """The test runs the command as the pod does, with the pod's token, because simulated pods have no exec."""
    cluster, target = release4.cluster, new_namespace(release4.cluster)
    release4.install(**VALUES)
    release4.running(1)
    role = install_role()
    cluster.create({**role, "metadata": {**role["metadata"], "namespace": target}})
    account = f"--serviceaccount={release4.namespace}:mc-follow"
    cluster.kubectl("create", "rolebinding", "follow", "--role=minicluster-install", account, "--namespace", target)
    config = json.loads(cluster.kubectl("config", "view", "--raw", "--flatten", "--minify", "--output=json"))
    config["users"][0]["user"] = {"token": release4.kubectl("create", "token", "mc-follow").strip()}
    config["contexts"][0]["context"]["namespace"] = release4.namespace
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    (tmp_path / "values.yaml").write_text(release4.get("configmap", "mc-follow")["data"]["values.yaml"])
    environment = release4.helm.environment | {"KUBECONFIG": str(tmp_path / "kubeconfig")}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = ["minicluster", "burst", *words, "--root-values", str(tmp_path / "values.yaml")]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)

    # the address and the certificate
    secret = tmp_path / "secret.yaml"
    done = run("values", "mc", "b0", "--secret-file", str(secret))
    assert done.returncode == 0, done.stderr
    lead = yaml.safe_load(done.stdout)["flux"]["bursting"]["leadBroker"]
    assert lead["port"] == release4.get("service", "mc-lead")["spec"]["ports"][0]["nodePort"]
    assert "curve.cert" in yaml.safe_load(secret.read_text())["stringData"]
    # the burst's release, in the other namespace
    helm = ("--kubeconfig", str(tmp_path / "kubeconfig"), "--namespace", target)
    (tmp_path / "burst.yaml").write_text(done.stdout)
    chart = str(ROOT / "charts/minicluster")
    release4.helm.ok(
        *("upgrade", "--install", "b0", chart, "--values", tmp_path / "burst.yaml", "--post-renderer", "minicluster"),
        *helm,
    )
    release4.helm.ok("uninstall", "b0", *helm)
    # the root's Job and pods, then its queue: nothing of it is forbidden
    done = run("install", "mc", "b0", "--namespace", target, "--timeout=1s")
    assert "forbidden" not in done.stderr.lower()


def test_a_restricted_namespace_admits_the_pod_of_the_follower(release4: Release) -> None:
    namespace = new_namespace(release4.cluster, tenant.SHARED.without("labels"))
    restricted = Release(release4.helm, release4.cluster, namespace)
    values = yaml.safe_load((ROOT / "values-examples/restricted.yaml").read_text())
    restricted.install(**{**values, "flux": {**values.get("flux", {}), **VALUES["flux"]}})

    def has_pod() -> bool:
        status = restricted.get("deployment", "mc-follow").get("status", {})
        return bool(status.get("replicas"))

    release4.cluster.wait("its pod", has_pod)
