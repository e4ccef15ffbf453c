"""A MiniCluster in a queue of Kueue, on a real cluster that has Kueue with elastic jobs."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pod_jobs import ONE_CORE, QUIET, ended, submit
from real_cluster import IN_PODS, Install

from tools.clients import run, until
from tools.releases import STEP_SECONDS, FluxRelease
from tools.testbed import KUBECONFIG, bind, kubernetes

pytestmark = [IN_PODS, pytest.mark.usefixtures("kueue")]

VERSION = "kueue.x-k8s.io/v1beta2"
#: Little, so that the quota decides and not the room on the Kubernetes nodes
REQUEST = {"resources": {"requests": {"cpu": "100m"}}}
ELASTIC = {"queueName": "user-queue", "elastic": True}


@pytest.fixture(scope="module")
def kueue() -> None:
    """Skip where Kueue's API is not served."""
    found = run("kubectl", "api-versions", env=kubernetes().env).out if KUBECONFIG in os.environ else ""
    if VERSION not in found.split():
        pytest.skip(f"the cluster of {KUBECONFIG} does not serve {VERSION}")


@pytest.fixture
def make_queue() -> Iterator[Any]:
    """Makes a queue with some CPUs in a release's namespace, and returns what changes their number.

    Its cluster-wide objects are removed with the test.
    """
    cluster, made = kubernetes(), []

    def make(release: FluxRelease, cpu: str) -> Callable[[str], None]:
        name = release.namespace
        made.append(name)
        quota = {"name": name, "resources": [{"name": "cpu", "nominalQuota": cpu}]}
        groups = [{"coveredResources": ["cpu"], "flavors": [quota]}]
        for kind, spec in (
            ("ResourceFlavor", {}),
            ("ClusterQueue", {"namespaceSelector": {}, "resourceGroups": groups}),
        ):
            cluster.create({"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec})
        metadata = {"name": "user-queue", "namespace": name}
        local = {"apiVersion": VERSION, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": name}}
        cluster.create(local)

        def change(cpu: str) -> None:
            path = "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota"
            patch = json.dumps([{"op": "replace", "path": path, "value": cpu}])
            cluster.kubectl("patch", "clusterqueue", name, "--type=json", "-p", patch)

        return change

    yield make
    for name in made:
        for kind in ("clusterqueue", "resourceflavor"):
            cluster.kubectl("delete", kind, name, "--wait=false")


def test_the_flux_queue_survives_a_suspension_by_kueue(
    release: Install, make_queue: Any, volume: str, tmp_path: Path
) -> None:
    values = {"size": 1, "maxSize": 3, **QUIET, "state": {"claimName": "state"}, "kueue": ELASTIC}
    cluster = release(values, {**ONE_CORE, **REQUEST}, labels=["kueue=true"])
    assert cluster.get("job")["spec"]["suspend"] is True
    bind(cluster, "state", volume, tmp_path / "state")
    make_queue(cluster, "200m")
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
    until(lambda: not cluster.pods(), STEP_SECONDS, "the end of the pods")
    assert "Failed" not in cluster.conditions()
    activate(cluster, active=True)
    until(lambda: start_again(cluster), STEP_SECONDS, "the start")
    cluster.wait_for("0-1")
    until(lambda: ended(cluster, waits) == "COMPLETED", STEP_SECONDS, "the job that waited")
    assert ended(cluster, runs) == "CANCELED"


def test_the_exit_code_after_a_suspension_is_that_of_the_work(release: Install, make_queue: Any) -> None:
    values = {"size": 2, "kueue": {"queueName": "user-queue"}}
    runner = {"command": "sleep 15; exit 7", **REQUEST}
    cluster = release(values, runner, labels=["kueue=true"])
    make_queue(cluster, "200m")
    until(lambda: len(cluster.uids()) == 2, STEP_SECONDS, "two pods")
    activate(cluster, active=False)
    until(lambda: not cluster.pods(), STEP_SECONDS, "the end of the pods")
    activate(cluster, active=True)
    assert cluster.wait_for_end() == {"FailureTarget": "PodFailurePolicy", "Failed": "PodFailurePolicy"}
    assert cluster.lead_codes()[-1] == 7


def test_a_group_that_kueue_holds_back_leaves_the_lead_and_the_queue_alone(release: Install, make_queue: Any) -> None:
    group = {"name": "gpu", "size": 2, "minSize": 0, "cores": 1}
    values = {"size": 1, "groups": [group], **QUIET, "kueue": {"queueName": "user-queue"}, "interactive": True}
    cluster = release(values, {**ONE_CORE, **REQUEST}, labels=["kueue=true"])
    # too little for the group, whichever Kueue takes first
    set_quota = make_queue(cluster, "150m")
    cluster.wait_for("0")
    uid, job = cluster.uids()[0], submit(cluster, "--requires=gpu", "-N2", "hostname")
    assert [pod["metadata"]["uid"] for pod in cluster.items("pods")] == [uid]
    set_quota("300m")
    until(lambda: ended(cluster, job) == "COMPLETED", STEP_SECONDS, "the job of the group")
    activate(cluster, f"{cluster.name}-gpu", active=False)
    cluster.wait_for("0")
    until(lambda: len(cluster.items("pods")) == 1, STEP_SECONDS, "the end of the group's pods")
    waits = submit(cluster, "--requires=gpu", "-N2", "hostname")
    activate(cluster, f"{cluster.name}-gpu", active=True)
    until(lambda: ended(cluster, waits) == "COMPLETED", STEP_SECONDS, "the job that waited")
    assert cluster.uids()[0] == uid


def start_again(cluster: FluxRelease) -> bool:
    """Say whether Kueue started a cluster that grew; mend the template where Kueue could not (use-kueue.md)."""
    found = [condition for one in cluster.items("workloads.kueue.x-k8s.io") for condition in conditions(one)]
    job = cluster.get("job")
    name = "kueue.x-k8s.io/workload"
    stale = name in job["spec"]["template"]["metadata"].get("annotations", {})
    if job["spec"]["suspend"] and stale and any(c["reason"] == "FailedToStart" for c in found):
        path = f"/spec/template/metadata/annotations/{name.replace('/', '~1')}"
        cluster.kubectl("patch", "job", cluster.name, "--type=json", "-p", json.dumps([{"op": "remove", "path": path}]))
    return not job["spec"]["suspend"]


def conditions(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the conditions of a Workload, which has no status until Kueue has looked at it."""
    return workload.get("status", {}).get("conditions", [])


def activate(cluster: FluxRelease, job: str = "", *, active: bool) -> None:
    """Let Kueue run the pods of one Job, by default the cluster's own, or not."""
    for workload in cluster.items("workloads.kueue.x-k8s.io"):
        [owner] = {reference["name"] for reference in workload["metadata"]["ownerReferences"]}
        is_finished = any(c["type"] == "Finished" for c in conditions(workload))
        if owner == (job or cluster.name) and not is_finished:
            patch = json.dumps({"spec": {"active": active}})
            cluster.kubectl("patch", "workload", workload["metadata"]["name"], "--type=merge", "-p", patch)
