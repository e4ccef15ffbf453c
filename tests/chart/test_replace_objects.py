"""The hooks of `upgrade.replace`: which objects, when they run, and what they may do."""

import json
from typing import Any

import pytest
from support import Helm, load_all, one

VALUES: dict[str, Any] = {"size": 2, "upgrade": {"replace": True}, "state": {"claimName": "s"}}
GROUPS = {"groups": [{"name": "gpu"}, {"name": "big"}]}


def hooks(text: str) -> dict[str, str]:
    """Return the hooks of objects, by kind and name."""
    found = [document for document in load_all(text) if "-replace" in document["metadata"]["name"]]
    return {f"{d['kind']} {d['metadata']['name']}": d["metadata"]["annotations"]["helm.sh/hook"] for d in found}


def test_without_the_value_there_is_no_hook(helm4: Helm) -> None:
    assert hooks(helm4.template(values={**VALUES, "upgrade": {"replace": False}}, release="mc")) == {}


def test_an_install_and_gitops_have_the_hook_that_removes(helm: Helm) -> None:
    text = helm.template(values=VALUES, release="mc")
    kinds = ("ServiceAccount", "Role", "RoleBinding", "ConfigMap")
    pods = ("Pod mc-replace-check", "Pod mc-replace-remove")
    expected = {**{f"{kind} mc-replace": "" for kind in kinds}, **dict.fromkeys(pods, "")}
    assert hooks(text) == dict.fromkeys(expected, "pre-upgrade,pre-rollback")
    # an upgrade that finds no live Job makes one, and waits for it
    after = hooks(helm.template("--is-upgrade", values=VALUES, release="mc"))
    assert after == {
        **dict.fromkeys(expected, "pre-upgrade,pre-rollback,post-upgrade"),
        **dict.fromkeys(pods, "pre-upgrade,pre-rollback"),
        "Pod mc-replace-wait": "post-upgrade",
    }


def test_the_account_may_remove_the_jobs_of_this_release_alone(helm4: Helm) -> None:
    jobs = {"apiGroups": ["batch"], "resources": ["jobs"]}
    own = {**jobs, "resourceNames": ["mc", "mc-gpu", "mc-big"], "verbs": ["get", "delete"]}
    new, pods = {**jobs, "verbs": ["create"]}, {"apiGroups": [""], "resources": ["pods"]}
    values = {**VALUES, **GROUPS}
    rules = one(helm4.template(values=values, release="mc"), "Role")["rules"]
    assert rules == [own, new, {**pods, "verbs": ["get", "list", "create"]}]


def test_what_can_not_come_back_is_found_before_anything_is_removed(helm4: Helm) -> None:
    text = helm4.template(values=VALUES, release="mc")
    check, remove = (one(text, "Pod", f"mc-replace-{action}") for action in ("check", "remove"))
    weights = [pod["metadata"]["annotations"]["helm.sh/hook-weight"] for pod in (check, remove)]
    assert weights == ["0", "1"]
    # Helm waits for this pod for 5 minutes: beside a container that never ends it fails, and Helm prints its log
    assert check["spec"]["activeDeadlineSeconds"] == 240
    for pod in (check, remove):
        pod["spec"].pop("activeDeadlineSeconds", None)
        pod["spec"]["containers"][0]["command"].pop(-2)
    assert check["spec"] == remove["spec"]


def test_the_program_is_told_what_the_jobs_record(helm4: Helm) -> None:
    text = helm4.template(values={**VALUES, **GROUPS}, release="mc")
    plan = json.loads(one(text, "ConfigMap", "mc-replace")["data"]["jobs.json"])
    assert plan["name"] == "mc"
    keys = ("minicluster/immutable", "minicluster/version")
    made = {name: one(text, "Job", name)["metadata"]["annotations"] for name in ("mc", "mc-gpu", "mc-big")}
    assert plan["jobs"] == {name: {key: notes[key] for key in keys} for name, notes in made.items()}
    # as a manifest for Kubernetes: a hook makes it
    assert plan["made"] == [{**one(text, "Job", name), "apiVersion": "batch/v1"} for name in made]


@pytest.mark.parametrize(
    ("values", "image", "flux"),
    [
        ({}, "ghcr.io/converged-computing/flux-view-ubuntu:tag-noble", "/opt/views/view/bin/flux"),
        ({"flux": {"container": {"image": "v:1"}}}, "v:1", "/opt/views/view/bin/flux"),
        ({"flux": {"container": {"disable": True}}}, "app:1", "flux"),
    ],
    ids=str,
)
def test_the_program_runs_in_an_image_that_has_a_python(
    helm4: Helm, values: dict[str, Any], image: str, flux: str
) -> None:
    secure = {"runAsUser": 7, "privileged": True, "procMount": "Unmasked"}
    runner = {"image": "app:1", "imagePullSecret": "s", "securityContext": secure}
    pod = {"nodeSelector": {"a": "b"}, "securityContext": {"fsGroup": 7}}
    text = helm4.template(values={**VALUES, **values, "containers": [runner], "pod": pod}, release="mc")
    spec = one(text, "Pod", "mc-replace-remove")["spec"]
    container = spec["containers"][0]
    assert (container["image"], container["securityContext"]) == (image, {"runAsUser": 7})
    program, action, file = container["command"][2:]
    assert (container["command"][:2], action) == ([flux, "python"], "remove")
    assert {program, file} == {"/minicluster/replace_jobs.py", "/minicluster/jobs.json"}
    assert (spec["nodeSelector"], spec["securityContext"]) == ({"a": "b"}, {"fsGroup": 7})
    assert spec["imagePullSecrets"] == [{"name": "s"}]
