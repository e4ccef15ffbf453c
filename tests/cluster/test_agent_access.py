"""The rights and the account of the autoscaler's agent in Kubernetes."""

import json
from pathlib import Path
from typing import Any

import pytest
from autoscaled import ON, SCALES, agent, resize, size
from kube import MANAGER, KubeError
from quick import QuickCluster
from simulated import new_namespace
from support import Helm

from tools.releases import Release
from tools.tenant import SHARED

pytestmark = pytest.mark.any_helm

CPU = {
    "autoscaling": {**ON, "targetCPUUtilizationPercentage": 50},
    "containers": [{"command": "sleep inf", "resources": {"requests": {"cpu": 1}}}],
}
KUEUE = {"kueue": {"queueName": "queue", "elastic": True}}


def managers(release: Release) -> set[str]:
    """Return the field managers of the Job."""
    job = json.loads(release.kubectl("get", "job", "mc", "--output=json", "--show-managed-fields"))
    return {entry["manager"] for entry in job["metadata"]["managedFields"]}


def may(release: Release, verb: str, what: str, namespace: str | None = None, account: str = "mc-agent") -> bool:
    """Say whether an account of the namespace may do something."""
    user = f"system:serviceaccount:{release.namespace}:{account}"
    return release.cluster.allows(user, namespace or release.namespace, verb, what)


MAY = {("get", "jobs/mc"), ("patch", "jobs/mc"), ("create", "events")}
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
ASKED = [
    *((verb, "jobs/mc") for verb in VERBS),
    *((verb, "jobs") for verb in VERBS),
    *((verb, "events") for verb in VERBS),
    ("get", "jobs/other"),
    ("patch", "jobs/other"),
    *((verb, "secrets") for verb in ("get", "list", "create")),
    ("get", "secrets/mc-curve"),
    *((verb, "pods") for verb in ("get", "list", "create", "delete")),
    ("create", "pods --subresource=exec"),
    ("get", "configmaps/mc-config"),
    ("patch", "roles/mc-agent"),
    ("create", "serviceaccounts --subresource=token"),
]


def test_the_agent_may_read_and_patch_its_job_and_create_events_only(release4: Release) -> None:
    release4.install(**SCALES)
    assert {each for each in ASKED if may(release4, *each)} == MAY
    # not in another namespace, and not with another account
    assert not may(release4, "get", "jobs/mc", namespace="default")
    assert not may(release4, "get", "jobs/mc", account="default")


@pytest.mark.parametrize(
    ("values", "more"),
    [
        ({}, []),
        (CPU, ["pods.metrics.k8s.io [] [] [list]"]),
        (KUEUE, ["pods [] [] [list]"]),
        ({"pod": {"disruptionBudget": True}}, ["poddisruptionbudgets.policy [] [mc] [get patch]"]),
    ],
    ids=["queue", "cpu", "kueue", "budget"],
)
def test_the_account_of_the_agent_has_only_these_rights_beyond_the_default(
    release4: Release, values: dict[str, Any], more: list[str]
) -> None:
    release4.install(**{**SCALES, **values})
    listed = {}
    for account in ("mc-agent", "default"):
        user = f"--as=system:serviceaccount:{release4.namespace}:{account}"
        lines = release4.kubectl("auth", "can-i", "--list", "--no-headers", user).splitlines()
        listed[account] = {" ".join(line.split()) for line in lines}
    own = sorted(listed["mc-agent"] - listed["default"])
    assert own == ["events [] [] [create]", "jobs.batch [] [mc] [get patch]", *more]


def test_a_resize_by_the_agent_changes_the_size_and_no_field_ownership(release4: Release, tmp_path: Path) -> None:
    release4.install(**SCALES)
    first = release4.running(2)
    pod = agent(release4, tmp_path)
    before = pod.get_job()
    resize(pod, 4)
    grown = release4.running(4)
    assert {index: grown[index] for index in first} == first
    assert size(release4) == 4
    assert MANAGER not in managers(release4)
    assert "helm" in managers(release4), "what others own is theirs still"
    # the Job has changed since it was read
    with pytest.raises(KubeError) as caught:
        pod.resize(before, 5)
    assert ": 409 " in str(caught.value)
    assert "\n" not in str(caught.value)
    assert size(release4) == 4
    resize(pod, 1)
    assert set(release4.running(1)) == {0}
    assert MANAGER not in managers(release4)


def test_the_agent_can_create_an_event_and_what_it_may_not_is_an_error_of_one_line(
    release4: Release, tmp_path: Path
) -> None:
    release4.install(**SCALES)
    pod = agent(release4, tmp_path)
    pod.event(pod.get_job(), "Scaled", "size 2 -> 3: 1 jobs wait for nodes")
    events = json.loads(release4.kubectl("get", "events", "--field-selector=reason=Scaled", "--output=json"))["items"]
    assert [(e["message"], e["type"], e["involvedObject"]["name"]) for e in events] == [
        ("size 2 -> 3: 1 jobs wait for nodes", "Normal", "mc")
    ]
    assert "size 2 -> 3" in release4.kubectl("describe", "job", "mc")
    other = agent(release4, tmp_path, job="other")
    for call, resource in ((other.get_job, "jobs.batch"), (lambda: other.cpu("mc", 0), "pods.metrics.k8s.io")):
        with pytest.raises(KubeError) as caught:
            call()
        text = str(caught.value)
        assert f": 403 {resource}" in text
        assert "\n" not in text
        assert (tmp_path / "token").read_text() not in text


def named(release: Release) -> set[tuple[str, str]]:
    return {(o["kind"], o["metadata"]["name"]) for o in release.items("serviceaccounts,roles,rolebindings")}


def account(release: Release) -> str:
    name: str = release.get("job")["spec"]["template"]["spec"].get("serviceAccountName", "")
    return name


def test_autoscaling_without_rbac_creates_the_account_and_no_role(release4: Release) -> None:
    release4.install(**{**SCALES, "autoscaling": {**ON, "rbac": False}})
    assert named(release4) == {("ServiceAccount", "mc-agent")}
    assert account(release4) == "mc-agent"
    assert not may(release4, "patch", "jobs/mc")


def test_a_service_account_of_the_user_gets_the_role_of_the_agent(release4: Release) -> None:
    release4.kubectl("create", "serviceaccount", "mine")
    release4.install(**SCALES, pod={"serviceAccountName": "mine"})
    assert named(release4) == {("ServiceAccount", "mine"), ("Role", "mc-agent"), ("RoleBinding", "mc-agent")}
    subjects = [{"kind": "ServiceAccount", "name": "mine", "namespace": release4.namespace}]
    assert release4.get("rolebinding", "mc-agent")["subjects"] == subjects
    assert account(release4) == "mine"
    assert may(release4, "patch", "jobs/mc", account="mine")
    assert not may(release4, "list", "jobs", account="mine")


def test_metrics_without_autoscaling_create_no_service_account(release4: Release) -> None:
    release4.install(**{**SCALES, "autoscaling": {}, "metrics": ON})
    assert (named(release4), account(release4)) == (set(), "")


def test_a_user_who_may_not_create_roles_installs_autoscaling_without_rbac(user: Helm, cluster: QuickCluster) -> None:
    """The ClusterRole `admin` is enough; with `edit`, an administrator makes the Role."""
    namespace = new_namespace(cluster)
    cluster.grant(namespace, "edit")
    release = Release(user, cluster, namespace, world=SHARED)
    text = release.refuse(command="install", **SCALES)
    assert 'cannot create resource "roles"' in text or 'cannot get resource "roles"' in text
    release.helm.run("uninstall", "mc", "--namespace", namespace)
    release.install(**{**SCALES, "autoscaling": {**ON, "rbac": False}})
    release.running(2)
    release.ok("uninstall", "--wait")
    cluster.grant(namespace, "admin")
    release.install(**SCALES)
    assert may(release, "patch", "jobs/mc")


def test_uninstall_leaves_nothing_of_the_agent(release: Release) -> None:
    release.install(**SCALES, metrics=ON)
    release.running(2)
    assert named(release) == {("ServiceAccount", "mc-agent"), ("Role", "mc-agent"), ("RoleBinding", "mc-agent")}
    release.ok("uninstall", "--wait")
    release.cluster.wait("nothing", lambda: release.items() == [])
