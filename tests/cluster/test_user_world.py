"""The world of the tests is a user's: what it refuses, and what it adds (tools/tenant.py)."""

from typing import Any

import pytest
from quick import QuickCluster
from simulated import new_namespace

from tools import tenant
from tools.clients import ProcessError, until
from tools.releases import Release


def pod(namespace: str, labels: dict[str, str], **container: Any) -> dict[str, Any]:
    one = {"name": "one", "image": "busybox", "securityContext": tenant.CONTEXT, **container}
    spec = {"securityContext": tenant.POD_CONTEXT, "containers": [one]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "one", "namespace": namespace, "labels": labels},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"labels": {"team": "sim"}}, "pods need the labels team and cost-centre"),
        ({"securityContext": {}}, 'violates PodSecurity "restricted:latest"'),
        ({"resources": {"limits": {"memory": "8Mi"}}}, "minimum memory usage per Container is 16Mi"),
        (
            {"resources": {"requests": {"cpu": "20m"}, "limits": {"cpu": "1"}}},
            "max limit to request ratio per Container",
        ),
        (
            {"resources": {"requests": {"memory": "3Ti"}, "limits": {"memory": "3Ti"}}},
            "maximum memory usage per Container",
        ),
    ],
)
def test_a_pod_that_a_shared_cluster_refuses_is_refused(
    cluster: QuickCluster, change: dict[str, Any], why: str
) -> None:
    namespace = new_namespace(cluster)
    labels = change.pop("labels", tenant.LABELS)

    def refusal() -> str:
        try:
            cluster.create(pod(namespace, labels, **change), dry_run=True)
        except ProcessError as error:
            return str(error)
        return ""  # a policy takes effect soon after it was made

    assert why in until(refusal, 30, "a refusal")


def test_what_a_test_needs_less_of_is_not_there(cluster: QuickCluster) -> None:
    bare = new_namespace(cluster, tenant.PLAIN)
    cluster.create(pod(bare, {}, securityContext={"privileged": True}), dry_run=True)


def test_the_pods_of_a_release_have_what_admission_gives(release4: Release) -> None:
    release4.install(size=1)
    release4.running(1)
    [one] = release4.pods()
    assert one["metadata"]["labels"].items() >= {tenant.ADDED: "policy", **tenant.LABELS}.items()
    assert one["spec"]["containers"][0]["resources"] == {
        "limits": tenant.LIMITS["default"],
        "requests": tenant.LIMITS["defaultRequest"],
    }
    assert release4.get("resourcequota", "tenant")["status"]["used"]["pods"] == "1"


def test_it_admits_all_pods_of_a_release(release4: Release) -> None:
    values = {
        "size": 1,
        "containers": [{"runFlux": True, "image": "a"}, {"name": "side", "image": "b", "command": "sleep inf"}],
        "services": [{"name": "web", "image": "c"}],
        "groups": [{"name": "gpu", "size": 1, "cores": 1}],
        "autoscaling": {"enabled": True},
        "flux": {"container": {"mode": "copy"}},
    }
    release4.install(**values)
    release4.running(1)
    release4.cluster.wait("all pods", lambda: len(release4.items("pods")) == 3)
