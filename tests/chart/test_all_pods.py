"""Every pod of a release: the labels, annotations, place, security and resources that the values give to pods."""

from typing import Any

import pytest
from support import CERTIFICATE, Helm, load_all

POD: dict[str, Any] = {
    "labels": {"team": "sim", "app.kubernetes.io/component": "broker", "app.kubernetes.io/instance": "other"},
    "annotations": {"sidecar.istio.io/inject": "false", "helm.sh/hook": "nothing", "minicluster/services": "x"},
    "nodeSelector": {"pool": "hpc"},
    "nodeAffinity": {"zone": ["a"]},
    "tolerations": [{"key": "hpc", "operator": "Exists"}],
    "schedulerName": "s",
    "runtimeClassName": "r",
    "priorityClassName": "p",
    "resources": {"cpu": "10m"},
    "securityContext": {"fsGroup": 7, "seccompProfile": {"type": "RuntimeDefault"}},
    "imagePullSecrets": ["pull"],
}
VALUES: dict[str, Any] = {
    "size": 2,
    "upgrade": {"replace": True},
    "state": {"claimName": "s"},
    "services": [{"name": "registry", "image": "registry:2"}],
    "groups": [{"name": "gpu", "cores": 1}],
    "flux": {
        "curveCert": CERTIFICATE,
        "bursting": {
            "clusters": [{"name": "b"}],
            "expose": {"type": "NodePort"},
            "follow": {"image": "i", "bursts": ["b:0-1"]},
        },
    },
}
#: The pods by the names of their objects, each with its own component
PODS = {
    "mc": "broker",
    "mc-gpu": "broker",
    "mc-services": "services",
    "mc-follow": "follow",
    "mc-quorum": "test",
    "mc-replace-check": "replace",
    "mc-replace-remove": "replace",
    "mc-replace-wait": "replace",
}


def pods(helm: Helm, **values: Any) -> dict[str, Any]:
    """Return the pods and the pod templates of an upgrade, by the names of their objects."""
    documents = load_all(helm.template("--is-upgrade", values={**VALUES, **values}, release="mc"))
    return {
        document["metadata"]["name"]: document if document["kind"] == "Pod" else document["spec"]["template"]
        for document in documents
        if document["kind"] in ("Pod", "Job", "Deployment")
    }


def test_all_pods_have_what_the_values_give_to_pods(helm4: Helm) -> None:
    found = pods(helm4, pod=POD)
    assert set(found) == set(PODS)
    node_affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
        }
    }
    same = ("nodeSelector", "tolerations", "schedulerName", "runtimeClassName", "priorityClassName")
    for name, pod in found.items():
        labels, annotations, spec = pod["metadata"]["labels"], pod["metadata"]["annotations"], pod["spec"]
        # the chart's own override those of the user, so no other pod is taken for a broker
        own = (labels["app.kubernetes.io/component"], labels["app.kubernetes.io/instance"])
        assert (name, labels["team"], *own) == (name, "sim", PODS[name], "mc")
        assert annotations["sidecar.istio.io/inject"] == "false"
        hook = annotations.get("helm.sh/hook")
        assert (name, hook != "nothing") == (name, name.startswith(("mc-quorum", "mc-replace")))
        assert {key: spec[key] for key in same} == {key: POD[key] for key in same}
        assert (name, spec["affinity"]["nodeAffinity"]) == (name, node_affinity)
        assert (spec["overhead"], spec["imagePullSecrets"]) == ({"cpu": "10m"}, [{"name": "pull"}])
        assert spec["securityContext"].items() >= POD["securityContext"].items()
    assert len(found["mc-services"]["metadata"]["annotations"]["minicluster/services"]) == 64


def test_the_pods_of_hooks_ask_for_nothing_unless_the_values_do(helm4: Helm) -> None:
    # a quota can refuse pods without resources
    small = {"cpu": "100m", "memory": "128Mi"}
    hooks = [name for name in PODS if name.startswith(("mc-quorum", "mc-replace"))]
    found = pods(helm4)
    assert [found[name]["spec"]["containers"][0]["resources"] for name in hooks] == [
        {"requests": {"cpu": 0, "memory": 0}, "limits": small}
    ] * len(hooks)
    given = {"requests": {"cpu": 1}, "limits": {"cpu": 2, "memory": "1Gi"}}
    found = pods(helm4, hooks={"resources": given})
    want = {"requests": {"cpu": 1, "memory": 0}, "limits": {"cpu": 2, "memory": "1Gi"}}
    assert [found[name]["spec"]["containers"][0]["resources"] for name in hooks] == [want] * len(hooks)


@pytest.mark.parametrize(
    ("given", "user"),
    [({}, None), ({"runAsUser": 0, "runAsGroup": 0}, None), ({"runAsUser": 7, "runAsNonRoot": False}, 7)],
    ids=str,
)
def test_the_follower_never_runs_as_root(helm4: Helm, given: dict[str, Any], user: int | None) -> None:
    security = pods(helm4, pod={"securityContext": given})["mc-follow"]["spec"]["securityContext"]
    expected = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert security == {**expected, **({"runAsUser": user} if user else {})}
