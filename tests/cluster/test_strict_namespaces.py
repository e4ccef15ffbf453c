"""Namespaces with a policy for pods, a LimitRange, or a container that is added to each pod: nothing is lost there."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hook_pods import HookPods, playing
from quick import QuickCluster

from tools.clients import ProcessError, until
from tools.releases import Release
from tools.tenant import LABELS, MARK, Tenant

pytestmark = pytest.mark.without(*Tenant._fields, why="its tests make these themselves")

ADMISSION = "admissionregistration.k8s.io"
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
RUNNER = {
    "image": "ubuntu:jammy",
    "volumes": {"data": {"path": "/data", "emptyDir": True}},
    "resources": {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"cpu": 1, "memory": "1Gi"}},
}
VALUES: dict[str, Any] = {
    "size": 2,
    "interactive": True,
    "upgrade": {"replace": True},
    "archive": {"path": "/data/state.tgz"},
    "containers": [RUNNER],
    "flux": {"container": {"resources": RUNNER["resources"]}},
    "services": [{"name": "registry", "image": "registry:2", "resources": RUNNER["resources"]}],
}
NEW = [{**RUNNER, "image": "ubuntu:noble"}]


@pytest.fixture
def hooks(release: Release, tmp_path: Path) -> Iterator[HookPods]:
    """The hook pods of a release that is installed."""
    with playing(release, tmp_path) as pods:
        pods.tells_checks = True
        yield pods


@pytest.fixture
def own(cluster: QuickCluster, namespace: str) -> Iterator[Any]:
    """Makes an object of the namespace, or a policy for it alone; removes policies at the end."""
    made: list[tuple[str, str]] = []

    def make(kind: str, spec: dict[str, Any]) -> None:
        name = f"{namespace}-{kind.lower()}"
        if kind == "LimitRange":
            where: dict[str, Any] = {"namespace": namespace}
            cluster.create({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **where}, "spec": spec})
            return
        only = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        spec["matchConstraints"] = {"resourceRules": [PODS], "namespaceSelector": only}
        binding = {"policyName": name, **({"validationActions": ["Deny"]} if kind.startswith("Validating") else {})}
        for each, its in ((kind, spec), (f"{kind}Binding", binding)):
            cluster.create({"apiVersion": f"{ADMISSION}/v1", "kind": each, "metadata": {"name": name}, "spec": its})
            made.append((each, name))

    yield make
    for kind, name in made:
        cluster.kubectl("delete", kind, name)


def needs_labels(release: Release) -> None:
    """Let the namespace take only pods with labels."""
    release.cluster.kubectl("label", "namespace", release.namespace, f"{MARK}labels=true")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": release.namespace}}
    probe = {**pod, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    until(lambda: "need the labels" in refusal(release, probe), what="the policy")


def refusal(release: Release, made: dict[str, Any]) -> str:
    """Return why an object would be refused."""
    try:
        release.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(made))
    except ProcessError as error:
        return str(error)
    return ""


def uid(release: Release) -> str:
    text: str = release.get("job")["metadata"]["uid"]
    return text


def test_all_pods_have_the_labels_that_the_namespace_asks_for(release: Release, hooks: HookPods) -> None:
    needs_labels(release)
    release.install(**VALUES, pod={"labels": LABELS})
    release.running(2)
    services = until(lambda: [p for p in release.items("pods") if "-services-" in p["metadata"]["name"]])
    assert services[0]["metadata"]["labels"].items() >= LABELS.items()
    before = uid(release)
    # the new pods would be refused: nothing is removed
    said = release.refuse(containers=NEW, pod={"labels": {"team": "sim"}})
    assert "pre-upgrade" in said
    assert uid(release) == before
    if hooks.said:  # else the hook's own pod is refused
        assert "nothing is removed, as the new Pod of mc would be refused: " in hooks.said[0]
    hooks.said.clear()
    release.upgrade(containers=NEW)
    release.running(2)
    assert hooks.said[0] == "the new Jobs mc can be made"
    assert uid(release) != before


def test_the_pods_of_hooks_fit_a_limit_range(release: Release, hooks: HookPods, own: Any) -> None:
    item = {
        "type": "Container",
        "min": {"cpu": "100m", "memory": "128Mi"},
        "max": {"cpu": "8", "memory": "16Gi"},
        "default": {"cpu": "500m", "memory": "512Mi"},
        "defaultRequest": {"cpu": "250m", "memory": "256Mi"},
        "maxLimitRequestRatio": {"cpu": "4"},
    }
    own("LimitRange", {"limits": [item]})
    release.install(**VALUES, hooks={"resources": {"requests": item["min"], "limits": item["min"]}})
    release.running(2)
    before = uid(release)
    large = [{**RUNNER, "resources": {"limits": {"cpu": 9, "memory": "1Gi"}}}]
    assert "pre-upgrade" in release.refuse(containers=large)
    assert "nothing is removed, as the new Pod of mc would be refused: " in hooks.said[0]
    assert uid(release) == before
    release.upgrade(containers=NEW)
    release.running(2)
    assert uid(release) != before


def test_a_container_that_is_added_to_each_pod_keeps_an_upgrade_from_removing_anything(
    release: Release, hooks: HookPods, own: Any
) -> None:
    release.install(**VALUES)
    release.running(2)
    before = uid(release)
    sidecar = 'Object.spec.containers{name: "istio-proxy", image: "busybox:1.36"}'
    added = f'[JSONPatch{{op: "add", path: "/spec/containers/-", value: {sidecar}}}]'
    change = {"patchType": "JSONPatch", "jsonPatch": {"expression": added}}
    own("MutatingAdmissionPolicy", {"failurePolicy": "Fail", "reinvocationPolicy": "Never", "mutations": [change]})
    until(lambda: added_to_a_pod(release), what="the policy")
    # Helm waits for the pod that checks, whose proxy never ends
    release.refuse("--timeout", "8s", containers=NEW)
    assert uid(release) == before
    release.running(2)
    assert "this pod ends when istio-proxy ends, too" in hooks.said[0]


def added_to_a_pod(release: Release) -> bool:
    """Say whether the policy is at work: it is not at once."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": release.namespace}}
    made = {**pod, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    text = release.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(made))
    return len(json.loads(text)["spec"]["containers"]) == 2
