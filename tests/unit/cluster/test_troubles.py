"""The ways out that no test with Kubernetes produces."""

import pytest
from minicluster.cluster.troubles import explained, way_out


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        ("Unschedulable", "0/1 nodes are available: 1 node(s) had untolerated taint {gpu: }.", "set pod.tolerations"),
        (
            "Unschedulable",
            "0/3 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 2 "
            "Insufficient memory.",
            "lower resources.requests or size; it starts when a Kubernetes node has room",
        ),
        (
            "Unschedulable",
            "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }.",
            "Kubernetes nodes are lost, full or closed: `kubectl get nodes` says which; it starts when one has room",
        ),
        (
            "Unschedulable",
            "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
            "`kubectl describe pvc` says why: set storageClass or accessModes",
        ),
        (
            "",
            'pods "d-0-x" is forbidden: violates PodSecurity "restricted:latest"',
            "start from values-examples/restricted.yaml",
        ),
        *(
            ("", f"forbidden: {said}", "set containers[].resources within the LimitRange of the namespace")
            for said in (
                "maximum cpu usage per Container is 500m, but limit is 4",
                "[minimum memory usage per Pod is 1Gi, but request is 10Mi, maximum cpu usage per Pod is 1]",
                "cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000",
            )
        ),
        ("ContainerCreating", "", ""),
        ("exit code 85", "", ""),
        ("Another", "said why", ""),
    ],
)
def test_a_reason_of_kubernetes_has_a_way_out(reason: str, message: str, expected: str) -> None:
    assert way_out(reason, message) == expected


def test_what_the_scheduler_says_of_preemption_is_left_out() -> None:
    message = "0/4 nodes are available: 4 Gone. preemption: 0/4 nodes are available: 4 Preemption is not helpful."
    assert explained("Pending: A", "A", message) == "Pending: A: 0/4 nodes are available: 4 Gone"
