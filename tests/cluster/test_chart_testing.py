"""chart-testing's `ct lint` and `ct install` of charts/minicluster/ci, with the post-renderer, by ct.yaml."""

import os
import subprocess
from pathlib import Path

import pytest
from quick import QuickCluster
from support import BIN, CHART, ROOT, Helm, Process, tool

pytestmark = pytest.mark.any_helm

VALUES = sorted((CHART / "ci").glob("*-values.yaml"))


@pytest.fixture
def environment(helm: Helm, cluster: QuickCluster, tmp_path: Path) -> dict[str, str]:
    """Return the environment of ct: `helm` is one of the two Helms, KUBECONFIG the cluster's."""
    if not tool("ct"):
        pytest.skip("ct is missing: run `make tools`")
    if not (ROOT / ".git").exists():
        pytest.skip("ct works in a git repository only")
    (tmp_path / "helm").symlink_to(BIN / helm.name)
    path = f"{tmp_path}{os.pathsep}{helm.environment['PATH']}"
    return helm.environment | {"PATH": path, "HELM_BIN": "helm", "KUBECONFIG": str(cluster.kubeconfig)}


def test_ct_lint_passes(environment: dict[str, str]) -> None:
    done = subprocess.run(["ct", "lint"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All charts linted successfully" in done.stdout


def test_ct_install_passes(environment: dict[str, str], cluster: QuickCluster, tmp_path: Path) -> None:
    log = tmp_path / "log"
    # ct's own end of each release is logs of what never ran, and the end of a namespace
    command = ["ct", "install", "--skip-clean-up"]
    with log.open("wb") as out, Process(command, cwd=ROOT, env=environment, stdout=out, stderr=out) as ct:

        def ended() -> bool:
            # nothing runs in the pod of `helm test`: the test ends it with 0 when the lead runs
            for pod in cluster.get("pods", "--all-namespaces", "--field-selector=status.phase=Running")["items"]:
                name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
                # the namespaces of other tests have other names
                if name.endswith("-quorum") and namespace.startswith("minicluster-"):
                    cluster.end_pod(namespace, name, 0)
            return ct.poll() is not None

        cluster.wait("the end of ct", ended, 300)
    text = log.read_text()
    assert ct.returncode == 0, text
    assert text.count("Installing chart with values file") == len(VALUES), text
    assert "All charts installed successfully" in text
