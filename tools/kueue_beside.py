"""Kueue's real controller beside the API server of tools/embedded.py, for tests and benchmarks.

Its webhooks see only namespaces with the label `kueue`, so whatever else uses the same cluster doesn't notice it.
"""

import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tools.clients import BIN, ClusterError, KubernetesCluster, run
from tools.embedded import LEASH, free_port

CRDS = BIN.parent / "crds"
#: `make kueue VERSION=…` names the folder of another version.
KUEUE = Path(os.environ.get("MINICLUSTER_TEST_KUEUE", BIN.parent))
PIN = BIN.parents[1] / "tools" / "kueue" / "go.mod"
LABEL = "kueue"
LOCAL_QUEUE = "user-queue"
GATES = "VisibilityOnDemand=false"
#: Kueue reads the certificate of its metrics from a fixed path in /etc: it gets an /etc of its own.
WITH_ETC = ("unshare", "--map-root-user", "--mount", "sh", "-c", 'mount --bind etc /etc && exec "$@"', "sh")
QUEUEING = "kueue.x-k8s.io/v1beta2"


def version() -> tuple[int, int]:
    """Return major and minor of the Kueue that runs. Raises ClusterError."""
    module = PIN if BIN.parent == KUEUE else KUEUE / "go.mod"
    match = re.search(r"sigs\.k8s\.io/kueue v(\d+)\.(\d+)", module.read_text())
    if not match:
        raise ClusterError(f"{module} has no version of Kueue")
    return int(match[1]), int(match[2])


def missing() -> str:
    """Return why Kueue can't run here; "" when it can."""
    if not (KUEUE / "bin" / "kueue").exists() or not (KUEUE / "crds").exists():
        return "kueue is missing: run `make tools`"
    if not shutil.which("unshare") or run("unshare", "--map-root-user", "--mount", "true").code:
        return "unshare can't make a mount namespace here"
    return ""


@contextmanager
def kueue(cluster: KubernetesCluster, folder: Path, **settings: Any) -> Iterator[int]:
    """Run Kueue until the end of the block, with more settings of its configuration; yield its process.

    ``folder`` has a certificate for this machine, such as the API server's: apiserver.crt and apiserver.key.
    """
    certificates, folder = folder, folder / "kueue"
    port = free_port()
    _write_files(folder, certificates, port, settings)
    definitions = list((KUEUE / "crds").glob("kueue.x-k8s.io_*.yaml"))
    cluster.kubectl("apply", "--server-side", f"--filename={','.join(map(str, definitions))}")
    kinds = {path.stem.partition("_")[2] for path in definitions}
    cluster.wait("Kueue's API", lambda: kinds <= _served(cluster))
    hooks = list(_webhooks(port, (certificates / "apiserver.crt").read_bytes()))
    command = [*WITH_ETC, *LEASH, str(KUEUE / "bin" / "kueue"), "--config=config.json", f"--feature-gates={GATES}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=cluster.env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        cluster.create(*hooks)
        cluster.wait("Kueue", lambda: _answers(cluster, process, folder), 60)
        yield process.pid
    finally:
        for hook in hooks:
            cluster.kubectl("delete", hook["kind"], hook["metadata"]["name"], "--ignore-not-found")
        process.kill()
        process.wait()


def _served(cluster: KubernetesCluster) -> set[str]:
    resources = json.loads(cluster.kubectl("get", "--raw", f"/apis/{QUEUEING}"))
    return {resource["name"] for resource in resources["resources"]}


def _write_files(folder: Path, server: Path, port: int, settings: Mapping[str, Any]) -> None:
    """Write the configuration; the certificates are for this address."""
    for place in (folder / "certs", folder / "etc/kueue/metrics/certs"):
        place.mkdir(parents=True, exist_ok=True)
        for name, source in (("tls.crt", "apiserver.crt"), ("tls.key", "apiserver.key")):
            shutil.copy(server / source, place / name)
    config = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": "0"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(folder / "certs")},
        "internalCertManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
        "integrations": {"frameworks": ["batch/job"]},
        "managedJobsNamespaceSelector": {"matchLabels": {LABEL: "true"}},
        **settings,
    }
    (folder / "config.json").write_text(json.dumps(config))


def _webhooks(port: int, certificate: bytes) -> Iterator[dict[str, Any]]:
    """Yield Kueue's webhooks for Jobs and for its own objects, at its address."""
    for hooks in yaml.safe_load_all((KUEUE / "crds" / "manifests.yaml").read_text()):
        wanted = []
        for hook in hooks["webhooks"]:
            path = hook["clientConfig"]["service"]["path"]
            bundle = base64.b64encode(certificate).decode()
            hook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}
            if path.endswith("-batch-v1-job"):
                hook["namespaceSelector"] = {"matchLabels": {LABEL: "true"}}
                wanted.append(hook)
            elif "kueue-x-k8s-io" in path:
                wanted.append(hook)
        yield {**hooks, "metadata": {"name": f"kueue-{hooks['kind'][:4].lower()}"}, "webhooks": wanted}


def _answers(cluster: KubernetesCluster, process: subprocess.Popen[bytes], folder: Path) -> bool:
    """Say whether Kueue's webhooks answer. Raises ClusterError when it has ended."""
    if process.poll() is not None:
        raise ClusterError(f"kueue ended with {process.returncode}: {(folder / 'log').read_text()[-2000:]}")
    flavor = {"apiVersion": QUEUEING, "kind": "ResourceFlavor", "metadata": {"name": "probe"}}
    return bool(cluster.kubectl("create", "--dry-run=server", "--filename=-", stdin=json.dumps(flavor)))


def queue(name: str, cpus: int, flavor: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return a queue of ``cpus`` CPUs for the namespace of the same name, its flavor and two priorities."""
    quota = {"name": "cpu", "nominalQuota": cpus}
    return [
        {"apiVersion": QUEUEING, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": dict(flavor or {})},
        {
            "apiVersion": QUEUEING,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {
                "namespaceSelector": {},
                "preemption": {"withinClusterQueue": "LowerPriority"},
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": name, "resources": [quota]}]}],
            },
        },
        {
            "apiVersion": QUEUEING,
            "kind": "LocalQueue",
            "metadata": {"name": LOCAL_QUEUE, "namespace": name},
            "spec": {"clusterQueue": name},
        },
        *(
            {
                "apiVersion": QUEUEING,
                "kind": "WorkloadPriorityClass",
                "metadata": {"name": f"{name}-{word}"},
                "value": value,
            }
            for word, value in (("low", 1), ("high", 2))
        ),
    ]
