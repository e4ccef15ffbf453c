"""A size that is requested by the replicas of a Deployment, on a real Kubernetes."""

import json
from typing import Any

import pytest
from minicluster.flux import to_idset
from pod_jobs import QUIET, UNTIL_TOLD, ended, size, submit
from real_cluster import IN_PODS, Install

from tools.clients import until
from tools.releases import STEP_SECONDS, FluxRelease

pytestmark = IN_PODS

SCALING: dict[str, Any] = {
    "size": 1,
    "maxSize": 8,
    "autoscaling": {"enabled": True, "handle": True, "idleSeconds": 3},
    "agent": {"periodSeconds": 1},
    **QUIET,
}
#: The agent has no request for CPU, so only a container's use can be a part of one
BY_CPU: dict[str, Any] = {
    "minReplicas": 1,
    "maxReplicas": 3,
    "metrics": [
        {
            "type": "ContainerResource",
            "containerResource": {
                "container": "app",
                "name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 50},
            },
        }
    ],
    "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
}


def replicas(cluster: FluxRelease) -> int:
    return int(cluster.get("deployment")["spec"]["replicas"])


def scale(cluster: FluxRelease, nodes: int) -> None:
    cluster.kubectl("scale", "deployment", cluster.name, f"--replicas={nodes}")


def settles(cluster: FluxRelease, nodes: int, seconds: float = STEP_SECONDS) -> None:
    """Wait until the cluster has a size, in Flux, in the Job and in the replicas."""
    until(lambda: size(cluster) == nodes, seconds)
    cluster.wait_for(to_idset(range(nodes)))
    until(lambda: replicas(cluster) == nodes, STEP_SECONDS)


def test_kubectl_scale_grows_and_shrinks_the_cluster_and_ends_no_job(release: Install) -> None:
    cluster = release(SCALING)
    settles(cluster, 1)
    scale(cluster, 4)
    settles(cluster, 4)
    job = submit(cluster, "--requires=rank:3", "-n1", "sh", "-c", UNTIL_TOLD)
    until(lambda: cluster.flux(0, "jobs", "-n", "-o", "{state}", job).strip() == "RUN", STEP_SECONDS)
    scale(cluster, 1)
    # the request waits for the job, which is on the highest node
    until(lambda: cluster.exec(0, "/mnt/flux/bin/minicluster-scale").strip() == "1", STEP_SECONDS)
    assert (size(cluster), replicas(cluster)) == (4, 1)
    cluster.exec(3, "touch", "/tmp/end")
    until(lambda: ended(cluster, job) == "COMPLETED", STEP_SECONDS)
    settles(cluster, 1)
    assert cluster.items("replicasets") == []


def test_a_horizontal_pod_autoscaler_on_cpu_use_grows_and_shrinks_the_cluster(release: Install) -> None:
    cluster = release(SCALING, {"name": "app", "resources": {"requests": {"cpu": "200m"}}})
    if "metrics.k8s.io" not in cluster.kubectl("api-versions"):
        pytest.skip("the cluster has no metrics API (metrics-server)")
    settles(cluster, 1)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": cluster.name}
    scaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "scaler"}}
    cluster.kubectl("apply", "--filename=-", stdin=json.dumps({**scaler, "spec": {"scaleTargetRef": target, **BY_CPU}}))
    burn = submit(cluster, "-n1", "sh", "-c", "while [ ! -e /tmp/end ]; do :; done")
    settles(cluster, 3, 3 * STEP_SECONDS)
    cluster.flux(0, "exec", "-r", "all", "touch", "/tmp/end")
    until(lambda: ended(cluster, burn) == "COMPLETED", STEP_SECONDS)
    settles(cluster, 1, 3 * STEP_SECONDS)
    events = [event["message"] for event in cluster.items("events", "--field-selector=reason=SuccessfulRescale")]
    print("\n".join(events))
    assert any("All metrics below target" in message for message in events)
