"""The Deployment that follows the queue with bursts, and its other objects."""

from typing import Any

import pytest
import yaml
from minicluster.burst import root
from minicluster.kube.kubectl import Kubernetes
from support import CERTIFICATE, Helm, by_name, deep, nested

NAME = "flux-sample"
ROOT: dict[str, Any] = {
    "size": 2,
    "flux": {
        "curveCert": CERTIFICATE,
        "bursting": {
            "clusters": [{"size": 4}, {"name": "b1", "size": 2}],
            "expose": {"type": "NodePort"},
            "follow": {"image": "i", "bursts": ["burst-0:0-4@jobs", 'b1@a\'$(HOME) "é" `b`/jobs']},
        },
    },
}
FOLLOW = ("flux", "bursting", "follow")
KINDS = ("ConfigMap", "Deployment", "Role", "RoleBinding", "ServiceAccount")


def of(helm: Helm, *options: str, **follow: Any) -> dict[str, Any]:
    """Return the objects of the follower by their kinds."""
    values = deep(ROOT, nested([*FOLLOW], {"kubeconfigSecret": "contexts", **follow}))
    found = by_name(helm.template(*options, values=values))
    return {kind: one for (kind, name), one in found.items() if name == f"{NAME}-follow"}


def pod(objects: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = objects["Deployment"]["spec"]["template"]
    return found


def test_no_follower_is_rendered_without_bursts(helm: Helm) -> None:
    assert sorted(of(helm)) == sorted(KINDS)
    assert of(helm, bursts=[], backlogSeconds=3) == {}


def test_the_follower_runs_burst_follow_with_its_options(helm4: Helm) -> None:
    [container] = pod(of(helm4, backlogSeconds=0, idleSeconds=60))["spec"]["containers"]
    assert container["command"] == [
        *("minicluster", "burst", "follow", "--root-values=/etc/minicluster/root/values.yaml"),
        *("--backlog=0s", "--idle=60s", "--", NAME, "burst-0:0-4@jobs"),
        # as Kubernetes expands it
        'b1@a\'$$(HOME) "é" `b`/jobs',
    ]


def test_the_follower_gets_the_values_of_the_root_without_its_certificate(helm: Helm) -> None:
    objects = of(helm)
    text = objects["ConfigMap"]["data"]["values.yaml"]
    assert CERTIFICATE.splitlines()[-1].strip() not in text
    found = root.read(NAME, Kubernetes(), text.encode())
    assert (found.name, found.max_size, [burst["name"] for burst in found.bursts]) == (NAME, 2, ["burst-0", "b1"])
    assert found.flux["curveCert"] == ""
    [secrets] = [rule for rule in objects["Role"]["rules"] if rule["resources"] == ["secrets"]]
    assert secrets["resourceNames"] == [f"{NAME}-curve"]


def test_the_follower_knows_the_groups_of_the_root_and_may_read_their_jobs(helm: Helm) -> None:
    groups = [{"name": "gpu", "size": 3, "cores": 1}, {"name": "spot", "size": 0, "cores": 1}]
    values = deep(ROOT, nested([*FOLLOW], {"kubeconfigSecret": "contexts"}))
    objects = by_name(helm.template(values={**values, "groups": groups}))
    text = objects["ConfigMap", f"{NAME}-follow"]["data"]["values.yaml"]
    found = root.read(NAME, Kubernetes(), text.encode())
    assert [(group.name, group.max_size) for group in found.groups] == [("gpu", 3), ("spot", 1)]
    [jobs] = [rule for rule in objects["Role", f"{NAME}-follow"]["rules"] if rule["resources"] == ["jobs"]]
    assert jobs["resourceNames"] == [NAME, f"{NAME}-gpu", f"{NAME}-spot"]


def test_the_follower_may_read_the_certificate_secret_of_the_user(helm4: Helm) -> None:
    values = deep(ROOT, {"flux": {"curveCert": "", "curveCertSecret": "mine"}})
    rules = by_name(helm4.template(values=values))["Role", f"{NAME}-follow"]["rules"]
    assert [rule["resourceNames"] for rule in rules if rule["resources"] == ["secrets"]] == [["mine"]]


@pytest.mark.parametrize("secret", ["", "contexts"])
def test_the_follower_reads_contexts_from_its_own_and_the_given_kubeconfig(helm4: Helm, secret: str) -> None:
    objects = of(helm4, kubeconfigSecret=secret)
    spec = pod(objects)["spec"]
    [container] = spec["containers"]
    own = f"{container['volumeMounts'][0]['mountPath']}/kubeconfig"
    files = [own, *(["/etc/minicluster/contexts/kubeconfig"] if secret else [])]
    assert container["env"][0] == {"name": "KUBECONFIG", "value": ":".join(files)}
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert ("contexts" in volumes) == bool(secret)
    assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)
    config = yaml.safe_load(objects["ConfigMap"]["data"]["kubeconfig"])
    [context] = config["contexts"]
    assert context["name"] == config["current-context"] == "in-cluster"
    assert context["context"]["namespace"] == objects["Deployment"]["metadata"]["namespace"]


def test_the_follower_runs_once_and_is_replaced_when_values_change(helm4: Helm) -> None:
    first = of(helm4)
    spec = first["Deployment"]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    labels = pod(first)["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels
    assert labels["app.kubernetes.io/component"] == "follow"
    other = of(helm4, "--set", "autoscaling.enabled=true,maxSize=3")
    assert other["Deployment"]["spec"]["selector"] == spec["selector"]
    assert pod(other)["metadata"]["annotations"] != pod(first)["metadata"]["annotations"]
