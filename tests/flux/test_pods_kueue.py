"""A MiniCluster in a queue of Kueue, on a real cluster that has Kueue with elastic jobs."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pod_jobs import ONE_CORE, QUIET, ended, submit
from real_cluster import IN_PODS, Install

from tools.clients import run, until
from tools.releases import PATIENCE, FluxRelease
from tools.testbed import KUBECONFIG, bind, kubernetes

pytestmark = [IN_PODS, pytest.mark.usefixtures("kueue")]

VERSION = "kueue.x-k8s.io/v1beta2"
ELASTIC = {"queueName": "user-queue", "elastic": True}


@pytest.fixture(scope="module")
def kueue() -> None:
    """Skip where Kueue's API is not served."""
    found = run("kubectl", "api-versions", env=kubernetes().env).out if KUBECONFIG in os.environ else ""
    if VERSION not in found.split():
        pytest.skip(f"the cluster of {KUBECONFIG} does not serve {VERSION}")


@pytest.fixture
def make_queue() -> Iterator[Any]:
    """Makes a queue for some pods in a release's namespace; its cluster-wide objects are removed with the test."""
    cluster, made = kubernetes(), []

    def make(release: FluxRelease, pods: int) -> None:
        name = release.namespace
        made.append(name)
        quota = {"name": name, "resources": [{"name": "cpu", "nominalQuota": pods}]}
        groups = [{"coveredResources": ["cpu"], "flavors": [quota]}]
        for kind, spec in (
            ("ResourceFlavor", {}),
            ("ClusterQueue", {"namespaceSelector": {}, "resourceGroups": groups}),
        ):
            cluster.create({"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec})
        metadata = {"name": "user-queue", "namespace": name}
        local = {"apiVersion": VERSION, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": name}}
        cluster.create(local)

    yield make
    for name in made:
        for kind in ("clusterqueue", "resourceflavor"):
            cluster.kubectl("delete", kind, name, "--wait=false")


def test_the_flux_queue_survives_a_suspension_by_kueue(
    release: Install, make_queue: Any, volume: str, tmp_path: Path
) -> None:
    values = {"size": 1, "maxSize": 3, **QUIET, "state": {"claimName": "state"}, "kueue": ELASTIC}
    cluster = release(values, {**ONE_CORE, "resources": {"requests": {"cpu": 1}}}, labels=["kueue=true"])
    assert cluster.get("job")["spec"]["suspend"] is True
    bind(cluster, "state", volume, tmp_path / "state")
    make_queue(cluster, 2)
    cluster.wait_for("0")
    first = cluster.pod(0)
    runs = submit(cluster, "sleep", "600")
    until(lambda: cluster.flux(0, "jobs", "-n", "-o", "{state}", runs).strip() == "RUN")
    # grows in place, as far as the quota goes
    cluster.upgrade(size=2)
    cluster.wait_for("0-1")
    assert cluster.pod(0) == first
    assert cluster.flux(0, "jobs", "-n", "-o", "{state}", runs).strip() == "RUN"
    waits = submit(cluster, "-N2", "true")
    activate(cluster, active=False)
    until(lambda: not cluster.pods(), PATIENCE, "the end of the pods")
    assert "Failed" not in cluster.conditions()
    activate(cluster, active=True)
    until(lambda: start_again(cluster), PATIENCE, "the start")
    cluster.wait_for("0-1")
    until(lambda: ended(cluster, waits) == "COMPLETED", PATIENCE, "the job that waited")
    assert ended(cluster, runs) == "CANCELED"


def test_the_exit_code_after_a_suspension_is_that_of_the_work(release: Install, make_queue: Any) -> None:
    values = {"size": 2, "kueue": {"queueName": "user-queue"}}
    runner = {"command": "sleep 15; exit 7", "resources": {"requests": {"cpu": 1}}}
    cluster = release(values, runner, labels=["kueue=true"])
    make_queue(cluster, 2)
    until(lambda: len(cluster.uids()) == 2, PATIENCE, "two pods")
    activate(cluster, active=False)
    until(lambda: not cluster.pods(), PATIENCE, "the end of the pods")
    activate(cluster, active=True)
    assert cluster.wait_for_end() == {"FailureTarget": "PodFailurePolicy", "Failed": "PodFailurePolicy"}
    assert cluster.lead_codes()[-1] == 7


def start_again(cluster: FluxRelease) -> bool:
    """Say whether Kueue started a cluster that grew; mend the template where Kueue could not (docs/kueue.md)."""
    conditions = [c for one in cluster.items("workloads.kueue.x-k8s.io") for c in one["status"].get("conditions", ())]
    job = cluster.get("job")
    name = "kueue.x-k8s.io/workload"
    stale = name in job["spec"]["template"]["metadata"].get("annotations", {})
    if job["spec"]["suspend"] and stale and any(c["reason"] == "FailedToStart" for c in conditions):
        path = f"/spec/template/metadata/annotations/{name.replace('/', '~1')}"
        cluster.kubectl("patch", "job", cluster.name, "--type=json", "-p", json.dumps([{"op": "remove", "path": path}]))
    return not job["spec"]["suspend"]


def activate(cluster: FluxRelease, *, active: bool) -> None:
    """Let Kueue run the cluster's pods, or not."""
    for workload in cluster.items("workloads.kueue.x-k8s.io"):
        if not any(c["type"] == "Finished" for c in workload["status"]["conditions"]):
            patch = json.dumps({"spec": {"active": active}})
            cluster.kubectl("patch", "workload", workload["metadata"]["name"], "--type=merge", "-p", patch)
