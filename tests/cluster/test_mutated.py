"""Policies of the cluster that add to each new Job: upgrades and rollbacks leave their additions alone."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hook_pods import playing
from minicluster.release.helm import version
from quick import QuickCluster
from simulated import new_namespace
from support import chart_of_others

from tools.clients import until
from tools.releases import Release
from tools.tenant import PLAIN, Tenant

pytestmark = pytest.mark.without(*Tenant._fields, why="what the cluster adds is the tests' own")

POD, KIND = "/spec/template/spec", "Object.spec.template.spec"
#: What is added to each new Job, as an expression of CEL.
ADDED = {
    "/spec/template/metadata/labels/cost-centre": '"1234"',
    "/spec/template/metadata/annotations/example.com~1note": '"added"',
    f"{POD}/containers/0/env/0": f'{KIND}.containers.env{{name: "ADDED", value: "a"}}',
    f"{POD}/containers/-": f'{KIND}.containers{{name: "beside", image: "busybox"}}',
    # the API server of 1.36.3 panics at a list of typed objects
    f"{POD}/tolerations": '[{"key": "spot", "operator": "Exists"}]',
    f"{POD}/imagePullSecrets": '[{"name": "pull"}]',
    f"{POD}/volumes/0": f'{KIND}.volumes{{name: "added", emptyDir: {KIND}.volumes.emptyDir{{}}}}',
}
VALUES: dict[str, Any] = {
    "size": 2,
    "maxSize": 4,
    "interactive": True,
    "containers": [{"image": "ubuntu:noble", "resources": {"limits": {"cpu": 2, "memory": "2048Mi"}}}],
}
#: A service that no Kubernetes node has room for.
FAILS = [{"name": "db", "image": "busybox", "command": "a", "resources": {"requests": {"cpu": 10_000}}}]


#: The label of a namespace in which the policy acts
MARK = "mutated"


@pytest.fixture(scope="module")
def policy(cluster: QuickCluster) -> Iterator[None]:
    """Let a policy add to each new Job of a namespace with the mark."""
    name, namespace = "add", new_namespace(cluster, PLAIN, **{MARK: "true"})
    patches = ", ".join(f'JSONPatch{{op: "add", path: "{path}", value: {value}}}' for path, value in ADDED.items())
    about = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    rule = {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}
    cluster.create(
        {
            **about,
            "kind": "MutatingAdmissionPolicy",
            "spec": {
                "matchConstraints": {
                    "namespaceSelector": {"matchLabels": {MARK: "true"}},
                    "resourceRules": [rule],
                },
                "failurePolicy": "Fail",
                "reinvocationPolicy": "Never",
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": f"[{patches}]"}}],
            },
        },
        {**about, "kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": name}},
    )
    # the API server takes the policy up a little later
    container = {"name": "a", "image": "b", "env": [{"name": "A", "value": "b"}]}
    pod = {"containers": [container], "restartPolicy": "Never", "volumes": [{"name": "v", "emptyDir": {}}]}
    template = {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}, "spec": pod}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "probe"}, "spec": {"template": template}}
    words = ("create", "--namespace", namespace, "--dry-run=server", "--output=json", "--filename=-")
    until(lambda: "cost-centre" in cluster.kubectl(*words, stdin=json.dumps(job)), 60, "the policy")
    yield
    for kind in ("mutatingadmissionpolicybinding", "mutatingadmissionpolicy"):
        cluster.kubectl("delete", kind, name)


@pytest.fixture
def namespace(cluster: QuickCluster, policy: None) -> str:
    """Make a namespace in which the policy acts."""
    assert policy is None
    return new_namespace(cluster, PLAIN, **{MARK: "true"})


def template(release: Release, name: str = "mc") -> dict[str, Any]:
    found: dict[str, Any] = release.get("job", name)["spec"]["template"]
    return found


def check_added(release: Release, name: str = "mc") -> None:
    """Check that the additions are there, beside what the chart renders."""
    found = template(release, name)
    spec = found["spec"]
    assert found["metadata"]["labels"]["cost-centre"] == "1234"
    assert [container["name"] for container in spec["containers"]] == ["mc", "beside"]
    assert spec["containers"][0]["env"][0]["name"] == "ADDED"
    assert spec["tolerations"] == [{"key": "spot", "operator": "Exists"}]
    assert spec["imagePullSecrets"] == [{"name": "pull"}]


def fail(release: Release, **values: Any) -> None:
    """Upgrade to what never becomes ready, and roll back by itself."""
    option = "--atomic" if release.helm.name == "helm3" else "--rollback-on-failure"
    done = release.run("upgrade", option, "--wait", "--timeout=3s", values={"services": FAILS, **values})
    assert done.code != 0
    assert "rolled back" in done.both, done.both
    assert release.revisions()[-1][1] == "deployed"


def test_upgrades_and_rollbacks_leave_alone_what_was_added(release: Release) -> None:
    release.install(**VALUES)
    check_added(release)
    uids, made = release.running(2), template(release)
    release.upgrade(size=3)
    release.running(3)
    release.ok("rollback", "1")
    assert release.running(2) == uids
    fail(release, size=4)
    assert release.running(2) == uids
    release.upgrade(size=1)
    release.ok("rollback", "2")
    assert release.running(3).items() >= {0: uids[0]}.items()
    assert template(release) == made
    # what the user changes is still refused
    assert "containers[0].image can't change" in release.refuse(containers=[{"image": "ubuntu:jammy"}])
    # a deleted Job comes back with the additions
    release.kubectl("delete", "job", "mc")
    release.upgrade(containers=[{"image": "ubuntu:jammy"}])
    check_added(release)
    anew, made = release.revisions()[-1][0], template(release)
    release.upgrade(size=2)
    assert template(release) == made
    release.ok("rollback", str(anew))
    release.running(1)
    check_added(release)


def test_a_newer_chart_leaves_it_alone(release: Release, copy_of_chart: Callable[..., Path]) -> None:
    release.install(**VALUES)
    uids, made = release.running(2), template(release)
    older = release.chart
    release.chart = copy_of_chart(
        {
            "Chart.yaml": {f"\nversion: {version()}": "\nversion: 9.8.7"},
            "templates/common/_place.tpl": {"enableServiceLinks: false": "enableServiceLinks: true"},
        }
    )
    release.upgrade(size=3)
    release.ok("rollback", "1")
    assert release.running(2) == uids
    release.chart = older
    release.upgrade(size=1)
    assert template(release) == made


def test_groups_keep_what_was_added(release: Release) -> None:
    group = {"name": "gpu", "size": 1, "maxSize": 2}
    release.install(**VALUES, groups=[group])
    check_added(release, "mc-gpu")
    made = template(release), template(release, "mc-gpu")
    release.upgrade(groups=[{**group, "size": 2}], size=1)
    release.ok("rollback", "1")
    assert release.get("job", "mc-gpu")["spec"]["completions"] == 1
    assert (template(release), template(release, "mc-gpu")) == made


def test_a_job_that_is_made_anew_gets_it_too(release: Release, tmp_path: Path) -> None:
    with playing(release, tmp_path):
        release.install(**VALUES, upgrade={"replace": True}, archive={"path": "/tmp/state.tgz"})
        release.running(2)
        release.upgrade(containers=[{"image": "ubuntu:jammy"}])
        release.running(2)
        check_added(release)
        new = release.get("job")["metadata"]["uid"]
        release.upgrade(size=3)
        release.running(3)
        assert release.get("job")["metadata"]["uid"] == new
        release.ok("rollback", "2")
        release.running(2)
        release.ok("rollback", "1")
        release.running(2)
        assert template(release)["spec"]["containers"][0]["image"] == "ubuntu:noble"


def test_a_minicluster_of_another_chart_keeps_what_was_added(release: Release, tmp_path: Path) -> None:
    document = (
        "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {name: mc}\nspec: {{ toJson .Values }}\n"
    )
    release.chart = chart_of_others(tmp_path / "other", document)
    release.install(**VALUES)
    check_added(release)
    uids = release.running(2)
    release.upgrade(size=3)
    release.ok("rollback", "1")
    assert release.running(2) == uids
