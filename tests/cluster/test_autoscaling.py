"""Autoscaling and what Kubernetes has to say: what the agent may do, and who has the last word on the size."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cluster_release import Release, new_namespace
from embedded import EmbeddedCluster
from support import PACKAGE, Helm, lines_with

sys.path.append(str(PACKAGE / "pod"))
from kube import MANAGER, Kube, KubeError

ON = {"enabled": True}
SCALES: dict[str, Any] = {"size": 2, "maxSize": 8, "autoscaling": ON, "containers": [{"command": "sleep inf"}]}
CPU = {
    "autoscaling": {**ON, "targetCPUUtilizationPercentage": 50},
    "containers": [{"command": "sleep inf", "resources": {"requests": {"cpu": 1}}}],
}
WAY = "uninstall mc first, or install under another name"


def agent(release: Release, folder: Path, job: str = "mc") -> Kube:
    """Return what the agent has, with a token as the kubelet would bring it."""
    config = json.loads(release.cluster.kubeconfig.read_text())["clusters"][0]["cluster"]
    (folder / "token").write_text(release.kubectl("create", "token", "mc-agent"))
    (folder / "ca.crt").write_text(Path(config["certificate-authority"]).read_text())
    return Kube(config["server"], release.namespace, job, folder)


def size(release: Release) -> int:
    spec = release.get("job")["spec"]
    assert spec["completions"] == spec["parallelism"]
    return int(spec["completions"])


def managers(release: Release) -> set[str]:
    """Return who is recorded as the owner of a part of the Job."""
    job = json.loads(release.kubectl("get", "job", "mc", "--output=json", "--show-managed-fields"))
    return {entry["manager"] for entry in job["metadata"]["managedFields"]}


# What it may do ----------------------------------------------------------------------------------------------


def may(release: Release, verb: str, what: str, namespace: str | None = None, account: str = "mc-agent") -> str:
    user = f"system:serviceaccount:{release.namespace}:{account}"
    command = ["kubectl", "auth", "can-i", f"--as={user}", "--namespace", namespace or release.namespace, verb, what]
    done = subprocess.run(command, capture_output=True, text=True, env=release.cluster.env, check=False)
    return done.stdout.strip() or done.stderr


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
    ("create", "pods/exec"),
    ("get", "configmaps/mc-config"),
    ("patch", "roles/mc-agent"),
    ("create", "serviceaccounts/token"),
]


def test_what_the_agent_may_do_and_nothing_else(release4: Release) -> None:
    release4.install(**SCALES)
    answers = {each: may(release4, *each) for each in ASKED}
    assert set(answers.values()) == {"yes", "no"}
    assert {each for each, answer in answers.items() if answer == "yes"} == MAY
    # in no other namespace, and nobody else
    assert may(release4, "get", "jobs/mc", namespace="default") == "no"
    assert may(release4, "get", "jobs/mc", account="default") == "no"


@pytest.mark.parametrize(
    ("values", "more"), [({}, []), (CPU, ["pods.metrics.k8s.io [] [] [list]"])], ids=["queue", "cpu"]
)
def test_all_that_the_agent_may_do_and_others_may_not(
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


# The agent and the API server --------------------------------------------------------------------------------


def test_the_agent_resizes_its_job_and_leaves_no_trace_but_the_size(release4: Release, tmp_path: Path) -> None:
    release4.install(**SCALES)
    first = release4.running(2)
    pod = agent(release4, tmp_path)
    before = pod.get_job()
    pod.resize(before, 4)
    grown = release4.running(4)
    assert {index: grown[index] for index in first} == first
    assert size(release4) == 4
    assert MANAGER not in managers(release4)
    assert "helm" in managers(release4), "what others own is theirs still"
    # somebody changed the Job since it was read: we
    with pytest.raises(KubeError) as caught:
        pod.resize(before, 5)
    assert ": 409 " in str(caught.value)
    assert "\n" not in str(caught.value)
    assert size(release4) == 4
    pod.resize(pod.get_job(), 1)
    assert set(release4.running(1)) == {0}
    assert MANAGER not in managers(release4)


def test_an_event_of_the_agent(release4: Release, tmp_path: Path) -> None:
    release4.install(**SCALES)
    pod = agent(release4, tmp_path)
    pod.event(pod.get_job(), "Scaled", "size 2 -> 3: 1 jobs wait for nodes")
    events = json.loads(release4.kubectl("get", "events", "--field-selector=reason=Scaled", "--output=json"))["items"]
    assert [(e["message"], e["type"], e["involvedObject"]["name"]) for e in events] == [
        ("size 2 -> 3: 1 jobs wait for nodes", "Normal", "mc")
    ]
    assert "size 2 -> 3" in release4.kubectl("describe", "job", "mc")


def test_what_the_agent_is_refused_is_an_error_of_one_line(release4: Release, tmp_path: Path) -> None:
    release4.install(**SCALES)
    pod = agent(release4, tmp_path, job="other")
    for call, resource in ((pod.get_job, "jobs.batch"), (lambda: pod.cpu("mc"), "pods.metrics.k8s.io")):
        with pytest.raises(KubeError) as caught:
            call()
        text = str(caught.value)
        assert f": 403 {resource}" in text
        assert "\n" not in text
        assert (tmp_path / "token").read_text() not in text


# Who has the last word on the size ---------------------------------------------------------------------------


def test_an_upgrade_keeps_the_live_size_until_autoscaling_is_off(release: Release, tmp_path: Path) -> None:
    release.install(**SCALES)
    pod = agent(release, tmp_path)
    uids = release.running(2)
    pod.resize(pod.get_job(), 5)
    release.upgrade()
    assert size(release) == 5
    release.upgrade(size=3)
    assert size(release) == 5
    release.upgrade(autoscaling={**ON, "idleSeconds": 30, "max": 6}, jobLabels={"a": "b"})
    assert size(release) == 5
    policy = json.loads(release.get("configmap", "mc-config")["data"]["agent.json"])["policy"]
    assert (policy["idle"], policy["max"]) == (30, 6)
    # off: `size` counts again, and nothing is in its way
    release.upgrade(autoscaling={"enabled": False})
    assert size(release) == 3
    assert json.loads(release.get("configmap", "mc-config")["data"]["agent.json"])["policy"] is None
    assert not release.items("roles,rolebindings")
    release.upgrade(size=4)
    assert size(release) == 4
    # on again
    release.upgrade(autoscaling=ON)
    assert size(release) == 4
    pod.resize(pod.get_job(), 7)
    release.upgrade(size=1)
    assert size(release) == 7
    release.upgrade(autoscaling={"enabled": False})
    assert size(release) == 1
    assert release.running(1)[0] == uids[0]


def test_a_size_set_by_hand_is_kept_while_autoscaling_is_on(release: Release, tmp_path: Path) -> None:
    release.install(**SCALES)
    patch = json.dumps({"spec": {"completions": 6, "parallelism": 6}})
    release.kubectl("patch", "job", "mc", "--type=merge", f"--patch={patch}")
    release.upgrade(jobLabels={"a": "b"})
    assert size(release) == 6
    off: dict[str, Any] = {"autoscaling": {"enabled": False}}
    if release.helm.major == 4:
        # kubectl owns the size now: Helm 4 says so, and how to go on
        text = release.refuse(**off)
        assert 'conflicts with "kubectl-patch"' in text.replace("\\", "")
        assert size(release) == 6
        # so it is until the agent, which owns nothing, has changed it
        pod = agent(release, tmp_path)
        pod.resize(pod.get_job(), 4)
    release.upgrade(**off)
    assert size(release) == 2


# What is refused ---------------------------------------------------------------------------------------------


def turned_on(what: str) -> str:
    return f"{what}.enabled can't be turned on for the live MiniCluster mc, which was installed without it; {WAY}"


@pytest.mark.parametrize(
    ("installed", "asked", "message"),
    [
        ({"autoscaling": {}}, {"autoscaling": ON}, turned_on("autoscaling")),
        ({"autoscaling": {}}, {"autoscaling": {}, "metrics": ON}, turned_on("metrics")),
        ({"autoscaling": {}, "metrics": ON}, {"autoscaling": ON}, turned_on("autoscaling")),
        (
            {},
            {"size": 9},
            "MiniCluster mc: size is 9, maxSize 8: lower size, or install with a larger maxSize",
        ),
        ({}, {"maxSize": 9}, f"maxSize can't change on the live MiniCluster mc: it is 8, asked is 9; {WAY}"),
        (
            {},
            {"autoscaling": {**ON, "max": 9}},
            "MiniCluster mc: autoscaling.max is 9, maxSize 8: lower it, or install with a larger maxSize",
        ),
        (
            {},
            {"autoscaling": {**ON, "min": 3}},
            "MiniCluster mc: size is 2, autoscaling goes from 3 to 8: choose a size between",
        ),
        ({}, {"size": 0}, "at '/size': minimum: got 0, want 1"),
        ({}, {"metrics": {"port": 9100}}, "it is 8051, asked is 9100"),
    ],
    ids=["on", "metrics-on", "on-beside-metrics", "size", "maxSize", "max", "min", "zero", "port"],
)
def test_what_is_refused_by_name(
    release: Release, installed: dict[str, Any], asked: dict[str, Any], message: str
) -> None:
    release.install(**{**SCALES, **installed})
    before = release.objects()
    assert lines_with(release.refuse(**asked).replace("\\n", "\n"), message)
    assert release.objects() == before


def test_metrics_may_go_on_and_off_where_there_is_an_agent(release4: Release) -> None:
    release4.install(**SCALES)
    uids = release4.running(2)
    for enabled in (True, False):
        release4.upgrade(metrics={"enabled": enabled})
        settings = json.loads(release4.get("configmap", "mc-config")["data"]["agent.json"])
        assert settings["port"] == (8051 if enabled else None)
    assert release4.running(2) == uids


# Its objects -------------------------------------------------------------------------------------------------


def named(release: Release) -> set[tuple[str, str]]:
    return {(o["kind"], o["metadata"]["name"]) for o in release.items("serviceaccounts,roles,rolebindings")}


def account(release: Release) -> str:
    name: str = release.get("job")["spec"]["template"]["spec"].get("serviceAccountName", "")
    return name


def test_without_rbac_an_administrator_grants_it(release4: Release) -> None:
    release4.install(**{**SCALES, "autoscaling": {**ON, "rbac": False}})
    assert named(release4) == {("ServiceAccount", "mc-agent")}
    assert account(release4) == "mc-agent"
    assert may(release4, "patch", "jobs/mc") == "no"


def test_an_account_of_the_users_gets_the_role(release4: Release) -> None:
    release4.kubectl("create", "serviceaccount", "mine")
    release4.install(**SCALES, pod={"serviceAccountName": "mine"})
    assert named(release4) == {("ServiceAccount", "mine"), ("Role", "mc-agent"), ("RoleBinding", "mc-agent")}
    subjects = [{"kind": "ServiceAccount", "name": "mine", "namespace": release4.namespace}]
    assert release4.get("rolebinding", "mc-agent")["subjects"] == subjects
    assert account(release4) == "mine"
    assert (may(release4, "patch", "jobs/mc", account="mine"), may(release4, "list", "jobs", account="mine")) == (
        "yes",
        "no",
    )


def test_metrics_alone_need_no_account(release4: Release) -> None:
    release4.install(**{**SCALES, "autoscaling": {}, "metrics": ON})
    assert (named(release4), account(release4)) == (set(), "")


def test_a_user_who_may_not_make_roles(user: Helm, cluster: EmbeddedCluster) -> None:
    """The ClusterRole `admin` is enough; with `edit`, an administrator makes the Role."""
    namespace = new_namespace(cluster)
    cluster.grant(namespace, "edit")
    release = Release(user, cluster, namespace)
    text = release.refuse(command="install", **SCALES)
    assert 'cannot create resource "roles"' in text or 'cannot get resource "roles"' in text
    release.helm.run("uninstall", "mc", "--namespace", namespace)
    release.install(**{**SCALES, "autoscaling": {**ON, "rbac": False}})
    release.running(2)
    release.ok("uninstall", "--wait")
    cluster.grant(namespace, "admin")
    release.install(**SCALES)
    assert may(release, "patch", "jobs/mc") == "yes"
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")


def test_nothing_is_left(release: Release) -> None:
    release.install(**SCALES, metrics=ON)
    release.running(2)
    assert named(release) == {("ServiceAccount", "mc-agent"), ("Role", "mc-agent"), ("RoleBinding", "mc-agent")}
    release.ok("uninstall", "--wait")
    release.cluster.wait("nothing", lambda: release.items() == [])
