"""A release by `minicluster create`: its values, its command line, and what its storage class offers."""

import json
import shlex
import shutil
import signal
from dataclasses import replace
from typing import Any

import pytest
from fake_kube import FakeKube, away, forbidden
from minicluster.commands import group
from minicluster.console import signals
from minicluster.errors import Interrupted, StateError, ToolError
from minicluster.kube.tool import CommandError
from minicluster.lifecycle.creation import CLASSES, create, find_class, remark, with_storage
from minicluster.lifecycle.deletion import Contents, contents
from minicluster.release import created, helm
from minicluster.release.created import CreateReleaseOptions, Keep, command_line, value_words

#: What Helm's own options mean, only Helm knows
NEEDS_HELM = pytest.mark.skipif(not shutil.which("helm"), reason="helm is missing: run `make tools`")


def values(asked: CreateReleaseOptions) -> dict[str, Any]:
    """Return the values that Helm is given, by their paths."""
    found = [word.removeprefix("--set-json=").partition("=") for word in value_words(asked)]
    return {path: json.loads(text) for path, _, text in found}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, {}),
        ({"image": "a:1", "nodes": 2, "most": 8}, {"size": 2, "maxSize": 8, "containers[0].image": "a:1"}),
        (
            {"nodes": 1, "most": 4, "autoscales": True},
            {"size": 1, "maxSize": 4, "autoscaling.enabled": True, "autoscaling.min": 1},
        ),
        ({"idle": 600.0}, {"endAfterSeconds": 600}),
        (
            {"most": 4, "autoscales": True, "idle": 600.0, "keep": Keep("1Gi")},
            {
                "maxSize": 4,
                "autoscaling.enabled": True,
                "autoscaling.suspendAfterSeconds": 600,
                "report.path": "/data/jobs.jsonl",
                "state.capacity": "1Gi",
                "containers[0].volumes.data.path": "/data",
                "containers[0].volumes.data.capacity": "1Gi",
                "containers[0].volumes.data.keep": True,
            },
        ),
        (
            {"keep": Keep("10Gi")},
            {
                "report.path": "/data/jobs.jsonl",
                "state.capacity": "10Gi",
                "containers[0].volumes.data.path": "/data",
                "containers[0].volumes.data.capacity": "10Gi",
                "containers[0].volumes.data.keep": True,
            },
        ),
        (
            {"keep": Keep("1Gi", "near", "near (x)")},
            {
                "report.path": "/data/jobs.jsonl",
                "state.capacity": "1Gi",
                "state.storageClass": "near",
                "state.accessModes": ["ReadWriteOnce"],
                "containers[0].volumes.data.path": "/data",
                "containers[0].volumes.data.capacity": "1Gi",
                "containers[0].volumes.data.storageClass": "near",
                "containers[0].volumes.data.accessModes": ["ReadWriteOnce"],
                "containers[0].volumes.data.keep": True,
                "pod.template.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "labelSelector": {"matchLabels": {"app.kubernetes.io/instance": "demo"}},
                        "topologyKey": "kubernetes.io/hostname",
                    }
                ],
            },
        ),
    ],
    ids=str,
)
def test_words_become_values(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    assert values(CreateReleaseOptions("demo", **asked)) == {"report.log": True, **expected}


@NEEDS_HELM
@pytest.mark.parametrize("asked", [{"values": {"logging": {"quiet": True}}}, {"sets": ["logging.quiet=true"]}], ids=str)
def test_a_quiet_log_stays_quiet(asked: dict[str, Any]) -> None:
    words = value_words(CreateReleaseOptions("demo", **asked))
    assert not [word for word in words if "report.log" in word]


def test_the_command_line_is_one_for_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, ...]] = []
    monkeypatch.setattr(FakeKube, "helm", lambda _, *words, **__: ran.append(words) or "", raising=False)
    line = created.install(FakeKube(context="c d", namespace="lab"), CreateReleaseOptions("demo", image="a b'c"))
    assert shlex.split(line) == ["helm", *ran[0], "--namespace", "lab", "--kube-context", "c d"]
    assert command_line(FakeKube(), ["install", "a"]) == "helm install a"


@pytest.mark.parametrize(
    "said",
    [
        "cannot re-use a name that is still in use",
        "cannot reuse a name that is still in use",
        "release: already exists",
    ],
)
def test_a_name_that_is_taken_is_refused_in_our_words(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    def fail(*_: object, **__: object) -> str:
        raise CommandError("helm install", f"INSTALLATION FAILED: {said}")

    monkeypatch.setattr(FakeKube, "helm", fail, raising=False)
    with pytest.raises(ToolError, match=r"^there is a release demo in .* already: take another name, or remove it by"):
        created.install(FakeKube(namespace="lab"), CreateReleaseOptions("demo"))
    with pytest.raises(ToolError, match="'a b' can't be a release's name"):
        created.install(FakeKube(), CreateReleaseOptions("a b"))


def storage(name: str, provisioner: str, *, is_default: bool = False) -> dict[str, Any]:
    notes = {"storageclass.kubernetes.io/is-default-class": "true"} if is_default else {}
    return {"metadata": {"name": name, "annotations": notes}, "provisioner": provisioner}


WAY = "--keep 1Gi@CLASS"
NEAR, FAR = storage("near", "rancher.io/local-path", is_default=True), storage("far", "nfs.csi.k8s.io")


def test_a_class_is_found_by_its_name_or_as_the_default() -> None:
    kube = FakeKube(has={CLASSES: [FAR, NEAR]})
    assert find_class(kube, "", WAY) == ("near", "rancher.io/local-path")
    assert find_class(kube, "far", WAY) == ("far", "nfs.csi.k8s.io")
    with pytest.raises(
        StateError, match=r"^there is no storage class no for the volumes: give --keep 1Gi@CLASS; there are far, near$"
    ):
        find_class(kube, "no", WAY)
    with pytest.raises(StateError, match=r"^there is no default storage class for the volumes: .* there are far$"):
        find_class(FakeKube(has={CLASSES: [FAR]}), "", WAY)
    with pytest.raises(StateError, match=r"^there is no storage class for .*: ask .* or leave --keep out$"):
        find_class(FakeKube(has={CLASSES: []}), "", WAY)


def test_a_user_who_may_not_read_classes_is_told_at_once_that_there_is_no_default() -> None:
    has = {CLASSES: forbidden("storageclasses")}
    with pytest.raises(StateError) as caught:
        find_class(FakeKube(has=has), "", WAY)
    way = "give --keep 1Gi@CLASS, whose CLASS an administrator knows, or leave it out"
    assert str(caught.value) == f"there is no default storage class for the volumes: {way}"
    assert find_class(FakeKube(has=has), "far", WAY) is None
    given = {"spec": {"storageClassName": "near"}}
    for answer in (given, forbidden("persistentvolumeclaims")):
        assert find_class(FakeKube(has=has | {"create persistentvolumeclaim": answer}), "", WAY) is None


AUTOSCALES = CreateReleaseOptions("demo", most=4, autoscales=True)


def test_an_install_that_is_interrupted_names_the_way_to_remove_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    told: list[str] = []
    monkeypatch.setattr(created, "install", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        create(FakeKube(), CreateReleaseOptions("mini"), None, told.append, told.append)
    # the command's line ends with it, and Python shows it below a traceback
    way = "mini stays, whole or in part: `minicluster delete mini` removes it"
    assert (caught.value.__notes__, told) == ([way], [])
    with pytest.raises(Interrupted, match=f"^interrupted: {way}$"):
        group.main(["create", "mini"], standalone_mode=False)


def test_what_fails_since_its_terminal_was_closed_ends_as_the_signal_says(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: object) -> str:
        try:
            signal.raise_signal(signal.SIGHUP)
        finally:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(signals, "_end_late", lambda _: None)
    monkeypatch.setattr(created, "install", closed)
    with pytest.raises(Interrupted) as caught:
        group.main(["create", "mini"], standalone_mode=False)
    assert (str(caught.value), caught.value.code) == ("interrupted", 129)


@NEEDS_HELM
def test_a_user_who_may_not_make_roles_is_told_before_anything_is_installed() -> None:
    kube = FakeKube(has={"create role": forbidden("roles")})
    with pytest.raises(StateError) as caught:
        create(kube, AUTOSCALES, None, print, print)
    assert kube.helms == []
    assert str(caught.value) == (
        "--autoscale needs the right to create Roles, which the ClusterRole edit has not: ask for admin in this "
        "namespace, or leave it out and change the size by `minicluster scale demo SIZE`"
    )
    # an administrator has given the agent its rights, or a file may say so
    for there, other in (
        (kube, replace(AUTOSCALES, sets=["autoscaling.rbac=false"])),
        (kube, replace(AUTOSCALES, autoscales=False)),
        (FakeKube(has={"create role": away()}), AUTOSCALES),
        (FakeKube(), AUTOSCALES),
    ):
        create(there, other, None, print, print)
        assert there.helms


@NEEDS_HELM
def test_the_way_out_is_told_where_only_helm_knows_of_a_role(monkeypatch: pytest.MonkeyPatch) -> None:
    said = 'INSTALLATION FAILED: roles.rbac.authorization.k8s.io "demo-agent" is forbidden: User "ed" cannot get'

    def fail(*_: object, **__: object) -> str:
        raise CommandError("helm install", said)

    monkeypatch.setattr(FakeKube, "helm", fail, raising=False)
    with pytest.raises(ToolError) as caught:
        create(FakeKube(), replace(AUTOSCALES, sets=["autoscaling.rbac=true"]), None, print, print)
    assert str(caught.value) == (
        f"helm install: {said}; the values ask for a Role, which the ClusterRole edit may not make: ask for admin in "
        "this namespace, or for the agent's Role and set autoscaling.rbac=false"
    )


@pytest.mark.parametrize(
    ("keep", "sizes", "is_of_one_node"),
    [
        (Keep("1Gi"), {"nodes": 2}, True),
        (Keep("1Gi", "near"), {"most": 2}, True),
        (Keep("1Gi"), {"nodes": 1}, False),
        (Keep("1Gi", "far"), {"nodes": 2}, False),
    ],
)
def test_several_nodes_share_a_volume_of_one_node_on_that_node(
    keep: Keep, sizes: dict[str, int], is_of_one_node: bool
) -> None:
    kube = FakeKube(has={CLASSES: [NEAR, FAR]})
    found = with_storage(kube, CreateReleaseOptions("demo", keep=keep, **sizes))  # type: ignore[arg-type]
    near = "near (rancher.io/local-path)" if is_of_one_node else ""
    assert found.keep == keep._replace(of_one_node=near)
    assert remark(found).startswith(f"the storage class {near} has ") == is_of_one_node


def test_the_contents_of_a_release_are_told_apart() -> None:
    ours = "labels: {app.kubernetes.io/name: minicluster}"
    record = 'annotations: {minicluster/immutable: "{}"}'
    kept = "annotations: {helm.sh/resource-policy: keep}"
    manifest = f"""---
kind: ConfigMap
metadata: {{name: page}}
---
kind: Job
metadata: {{name: a, {ours}, {record}}}
---
kind: Job
metadata: {{name: a-gpu, labels: {{app.kubernetes.io/name: minicluster, minicluster/group: gpu}}, {record}}}
---
kind: PersistentVolumeClaim
metadata: {{name: a-state, {ours}, {kept}}}
---
kind: PersistentVolumeClaim
metadata: {{name: a-more, {ours}}}
"""
    assert contents(manifest.encode()) == Contents(True, ["a"], ["ConfigMap page"], ["a-state"])
    assert contents(b"---\n# nothing\n") == Contents(False, [], [], [])


REFUSED = "values don't meet the specifications of the schema(s) in the following chart(s):\nminicluster:\n"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        # Helm 4, Helm 3, a template's fail, the schema
        ("YAML parse error on minicluster: size is 7: no [the rest of this line is Helm's]: error x", "size is 7: no"),
        (
            "error while running command /a/minicluster. error output:\nminicluster: warning: w\n"
            "minicluster: size is 7: no\n: exit status 1",
            "size is 7: no",
        ),
        ("execution error at (minicluster/templates/a.yaml:1:4): size is 7: no", "size is 7: no"),
        (f"{REFUSED}- at '/size': no", "size: no"),
        (
            f"{REFUSED}- at '/flux': additional properties 'logLvel' not allowed",
            "flux.logLvel is not a field; did you mean logLevel?",
        ),
        (
            f"{REFUSED}- at '/groups/0': validation failed\n  - at '/groups/0': missing property 'name'\n"
            "  - at '/groups/0': additional properties 'nam' not allowed\n"
            "- at '/containers/0/resources': additional properties 'limit' not allowed",
            "groups[0].nam is not a field; did you mean name?",
        ),
        (
            f"{REFUSED}- at '/size': no\n- at '': additional properties 'sise', 'x' not allowed\n",
            "sise is not a field; did you mean size?",
        ),
        ("no answer within 300 s", "helm upgrade: UPGRADE FAILED: no answer within 300 s"),
    ],
)
def test_the_reason_of_a_failed_helm_is_ours_alone(said: str, reason: str) -> None:
    assert helm.explain(CommandError("helm upgrade", f"UPGRADE FAILED: {said}")) == reason
