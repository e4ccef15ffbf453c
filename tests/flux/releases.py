"""MiniClusters on a real Kubernetes: Helm releases, each in a namespace of its own."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from broker_pods import MOUNT, choose_scheduler, until

IN_PODS = pytest.mark.skipif(
    "MINICLUSTER_TEST_KUBECONFIG" not in os.environ,
    reason="MINICLUSTER_TEST_KUBECONFIG names no cluster to run pods on",
)
ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts/minicluster"
NAME = "mini"
PATIENCE = 120.0


def environment() -> dict[str, str]:
    """Return the environment of helm and kubectl."""
    path = f"{ROOT / '.tools/bin'}:{ROOT / '.venv/bin'}:{os.environ['PATH']}"
    kubeconfig = os.environ["MINICLUSTER_TEST_KUBECONFIG"]
    return {**os.environ, "PATH": path, "KUBECONFIG": kubeconfig, "HELM_PLUGINS": str(ROOT)}


def run(*words: str, check: bool = True, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run helm or kubectl."""
    done = subprocess.run(
        words, env=environment(), input=stdin, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert not check or done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
    return done


class Release:
    """One MiniCluster and what is seen of it."""

    def __init__(self, namespace: str, helm: str, values: Mapping[str, Any], folder: Path) -> None:
        self.namespace, self.helm = namespace, helm
        self.values_file = folder / f"{namespace}.json"
        self.values_file.write_text(json.dumps(values))
        self.size: int = values.get("size", 1)

    def install(self, *options: str) -> "Release":
        """Install the chart."""
        self._helm("install", *options)
        return self

    def upgrade(self, *options: str) -> None:
        """Upgrade with the same values and options."""
        self._helm("upgrade", *options)

    def _helm(self, verb: str, *options: str) -> None:
        words = (self.helm, verb, NAME, str(CHART), "-n", self.namespace, "--post-renderer", "minicluster")
        run(*words, *options, "-f", str(self.values_file))

    def test(self) -> str:
        """Return what `helm test` prints."""
        return run(self.helm, "test", NAME, "-n", self.namespace).stdout

    def kubectl(self, *words: str, check: bool = True, stdin: str | None = None) -> str:
        """Return what kubectl prints in the release's namespace."""
        return run("kubectl", "-n", self.namespace, *words, check=check, stdin=stdin).stdout

    def json(self, *words: str) -> Any:
        """Return objects of the namespace."""
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def conditions(self) -> dict[str, str]:
        """Return the Job's true conditions and their reasons."""
        status = self.json("job", NAME)["status"]
        return {c["type"]: c["reason"] for c in status.get("conditions", []) if c["status"] == "True"}

    def wait_for_end(self) -> dict[str, str]:
        """Return the Job's conditions once it is Complete or Failed."""
        until(lambda: {"Complete", "Failed"} & self.conditions().keys(), PATIENCE)
        return self.conditions()

    def pods(self, index: int | None = None) -> list[Any]:
        """Return the pods, those that ended too, by index and age."""
        pods = self.json("pods", "-l", f"job-name={NAME}")["items"]
        pods.sort(key=lambda pod: (int(self.index(pod)), pod["metadata"]["creationTimestamp"]))
        return [pod for pod in pods if index is None or self.index(pod) == str(index)]

    @staticmethod
    def index(pod: Any) -> str:
        """Return the completion index of a pod."""
        return str(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])

    def pod(self, index: int) -> str:
        """Return the name of the pod of an index that is there, and is not about to leave."""
        alive = [
            p
            for p in self.pods(index)
            if "deletionTimestamp" not in p["metadata"] and p["status"]["phase"] == "Running"
        ]
        return str(alive[-1]["metadata"]["name"]) if alive else ""

    def uids(self) -> list[str]:
        """Return the pods' UIDs, by index, those that run."""
        return [pod["metadata"]["uid"] for pod in self.pods() if pod["status"]["phase"] == "Running"]

    def log(self, index: int) -> str:
        """Return the log of the last pod of an index."""
        return self.kubectl("logs", self.pods(index)[-1]["metadata"]["name"])

    def lead_codes(self) -> list[int]:
        """Return the exit codes of all pods of index 0 that are still listed."""
        states = [pod["status"]["containerStatuses"][0]["state"] for pod in self.pods(0)]
        return [state["terminated"]["exitCode"] for state in states]

    def created(self, index: int) -> int:
        """Return how many pods of an index were ever made."""
        events = self.json("events", "--field-selector=reason=SuccessfulCreate")["items"]
        return sum(f"pod: {NAME}-{index}-" in event["message"] for event in events)

    def exec(self, index: int, *words: str) -> str:
        """Return what a command prints in the pod of an index; nothing when it fails."""
        pod = self.pod(index)
        return self.kubectl("exec", pod, "--", *words, check=False) if pod else ""

    def flux(self, index: int, *words: str) -> str:
        """Return what flux prints in the pod of an index."""
        return self.exec(index, f"{MOUNT}/bin/flux", *words)

    def up(self) -> str:
        """Return the ranks that the lead can use now."""
        return self.flux(0, "resource", "list", "-n", "-s", "up", "-o", "{ranks}").strip()

    def wait_for(self, ranks: str, seconds: float = PATIENCE) -> float:
        """Return after how many seconds all these ranks are up."""
        begin = time.monotonic()
        until(lambda: self.up() == ranks, seconds)
        return time.monotonic() - begin

    def evict(self, pod: str) -> None:
        """Evict a pod, as a drain does."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": self.namespace},
        }
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod}/eviction"
        self.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(body))

    def kill_broker(self, index: int) -> None:
        """Kill the broker, not the pod."""
        pid = self.flux(index, "getattr", "broker.pid").strip()
        self.kubectl("exec", self.pod(index), "--", "/bin/sh", "-c", f"kill -9 {pid}")


def images() -> dict[str, Any]:
    """Return the values that choose the images, where the environment says other than the chart."""
    values: dict[str, Any] = {"containers": [{"image": os.environ.get("MINICLUSTER_TEST_IMAGE", "ubuntu:noble")}]}
    view = os.environ.get("MINICLUSTER_TEST_VIEW_IMAGE")
    return {**values, "flux": {"container": {"image": view}}} if view else values


def values_of(values: Mapping[str, Any], runner: Mapping[str, Any], mode: str, scheduler: str = "") -> dict[str, Any]:
    """Return the values of a test, whose containers are sidecars, with images and scheduler (the view's own)."""
    base = images()
    values = choose_scheduler(values, scheduler or "Fluxion")
    sidecars = [{"image": base["containers"][0]["image"], **sidecar} for sidecar in values.get("containers", ())]
    flux = dict(values.get("flux", {}))
    flux["container"] = {"mode": mode, **base.get("flux", {}).get("container", {}), **flux.get("container", {})}
    return {**values, "containers": [{**base["containers"][0], **runner}, *sidecars], "flux": flux}


def create_namespace(name: str, labels: Sequence[str] = ()) -> None:
    """Make a namespace."""
    run("kubectl", "create", "namespace", name)
    if labels:
        run("kubectl", "label", "namespace", name, *labels)


def bind(cluster: Release, claim: str, volume: str, folder: Path) -> None:
    """Make a claim in the release's namespace and a volume for it, a folder of the node."""
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    persistent = {"capacity": {"storage": "1Gi"}, "hostPath": {"path": str(folder), "type": "DirectoryOrCreate"}}
    one = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume},
        "spec": {**spec, **persistent, "claimRef": {"namespace": cluster.namespace, "name": claim}},
    }
    two = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim, "namespace": cluster.namespace},
        "spec": {**spec, "resources": {"requests": {"storage": "1Gi"}}, "volumeName": volume},
    }
    for document in (one, two):
        run("kubectl", "apply", "-f", "-", stdin=json.dumps(document))


Install = Callable[..., Release]
