"""What becomes of a live cluster at an upgrade."""

import base64
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from minicluster.errors import SpecError
from minicluster.render import constants, curve, handover, postrender, upgrade
from minicluster.render.model import MiniClusterModel
from support import ROOT

OLDER = ROOT / "tests" / "cluster" / "older"
Cluster = Callable[..., MiniClusterModel]
MUTABLE = ["global", "size", "minSize", "services", "flux.bursting.expose", "agent.periodSeconds"]
WAY = "uninstall rel first, or install under another name"
LOSS = "uninstall rel first, which loses its queue, or install under another name"
SPEC: dict[str, Any] = {
    "size": 2,
    "maxSize": 4,
    "tasks": 3,
    "containers": [
        {"name": "app", "runFlux": True, "command": "a 'b'\n", "commands": {"prefix": "time -N 2", "pre": "true"}},
        {"name": "side", "command": "x"},
    ],
    "services": [{"name": "db", "command": "y", "commands": {"servicePre": "z"}}],
    "flux": {"environment": {"A": "'\nmc_size=9\nmc_start_words=x\n\""}, "submitCommand": "flux submit -N 7"},
}
SCALED = {"autoscaling": {"enabled": True, "min": 1}}


def files(cluster: MiniClusterModel) -> dict[str, str]:
    """Return the files of its ConfigMap."""
    data: dict[str, str] = next(postrender.documents(cluster, curve.random_keypair))["data"]
    return data


def handed(files: Any = None, was: Any = None, asked: Any = None, **more: Any) -> dict[str, Any]:
    """Return what a hand-over document has of a live cluster."""
    found = {"release": "rel", "was": was or {}, "asked": asked or {}, "files": files or {}, "mutable": MUTABLE, **more}
    return {"installed": base64.b64encode(json.dumps(found).encode()).decode()}


CHANGES: list[Any] = [
    ({}, {}),
    ({}, {"size": 3}),
    ({}, {"size": 4}),
    ({"size": 4}, {"size": 1}),
    ({"size": 4, "tasks": 0}, {"size": 3, "tasks": 0}),
    ({"tasks": 1}, {"tasks": 1, "size": 1}),
    ({"minSize": 1}, {}),
    ({}, {"minSize": 2, "size": 3}),
    ({"size": 4}, {"size": 4, "minSize": 2}),
    (SCALED, {"autoscaling": {"enabled": False}}),
    ({**SCALED, "size": 4}, {"autoscaling": {"enabled": True, "min": 2, "idleSeconds": 5, "max": 3}, "size": 3}),
    ({"autoscaling": {"enabled": False}}, SCALED),
    ({"metrics": {"enabled": True}}, {"agent": {"periodSeconds": 3}}),
    ({}, {"services": []}),
    ({}, {"services": [{"name": "web", "command": ["a", "b c"], "commands": {"servicePre": "p"}}]}),
]


@pytest.mark.parametrize("runner", [{}, {"batch": True}, {"launcher": True}], ids=["submit", "batch", "launcher"])
@pytest.mark.parametrize(("before", "after"), CHANGES)
def test_an_upgrade_with_the_same_version_changes_all_mutable_values(
    cluster_of: Cluster, before: dict[str, Any], after: dict[str, Any], runner: dict[str, Any]
) -> None:
    containers = [{**SPEC["containers"][0], **runner}, SPEC["containers"][1]]
    asked = {**SPEC, "containers": containers, **after}
    held = files(cluster_of({**SPEC, "containers": containers, **before}))
    assert files(cluster_of(asked, **handed(held))) == files(cluster_of(asked))


def test_an_upgrade_keeps_the_files_of_another_version(cluster_of: Cluster) -> None:
    held = files(cluster_of({**SPEC, **SCALED}))
    held |= {"leave.py": "other", "new.sh": "new", "broker.toml": "other", "side.new": "n", "quorum.sh": "old"}
    held |= {"side.command": "other"}
    held["settings.sh"] = (
        "# another\n# version\nmc_new='a'\nmc_size=2\nmc_start_words='flux other -o-Slast=1'\n"
        "mc_submit_words='time -N 2 flux submit -N 7 -n 3 --other'\nother=1\nmc_size=5\n"
    )
    policy = {"min": 1, "max": 4, "backlog": 3, "new": 7}
    keys = ["min", "max", "backlog", "idle", "new"]
    settings = {"size": 2, "period": 10, "policy": policy, "policy_keys": keys, "port": None, "new": 1}
    held["agent.json"] = json.dumps(settings)
    made = files(cluster_of({**SPEC, "size": 3, "autoscaling": {"enabled": True, "min": 2}}, **handed(held)))
    assert made["settings.sh"] == (
        "# another\n# version\nmc_new='a'\nmc_size=3\nmc_start_words='flux other -o-Slast=1 -o-Sbroker.quorum=2'\n"
        "mc_submit_words='time -N 2 flux submit -N 7 -N 3 -n 3 --other'\nother=1\nmc_size=5\n"
    )
    new = {"min": 2, "max": 4, "backlog": 1, "idle": 60}
    assert json.loads(made["agent.json"]) == {**settings, "size": 3, "policy": new}
    assert made["quorum.sh"] != "old"
    kept = {file: text for file, text in held.items() if file not in ("settings.sh", "agent.json", "quorum.sh")}
    assert {file: text for file, text in made.items() if file in kept} == kept
    assert made.keys() == held.keys()


def test_the_live_agent_gets_only_policy_keys_that_it_knows(cluster_of: Cluster) -> None:
    held = files(cluster_of({**SPEC, **SCALED}))
    settings = {"size": 2, "period": 10, "policy": None, "policy_keys": ["min", "max", "backlog", "idle"], "new": 1}
    held["agent.json"] = json.dumps(settings)
    asked = {**SPEC, "autoscaling": {"enabled": True, "idleSeconds": 5}, "metrics": {"enabled": True}}
    made = json.loads(files(cluster_of(asked, **handed(held)))["agent.json"])
    assert made == {**settings, "policy": {"min": 1, "max": 4, "backlog": 1, "idle": 5}}
    asked["autoscaling"]["maxStepUp"] = 2
    with pytest.raises(SpecError) as caught:
        files(cluster_of(asked, **handed(held)))
    assert str(caught.value) == "autoscaling: the agent of the live MiniCluster does not know step_up: unset it"


@pytest.mark.parametrize("gone", ["settings.sh", "agent.json", None])
def test_an_upgrade_makes_all_files_anew_if_a_needed_one_is_gone(cluster_of: Cluster, gone: str | None) -> None:
    held = {file: "old" for file in files(cluster_of(SPEC)) if gone and file != gone}
    assert files(cluster_of(SPEC, **handed(held))) == files(cluster_of(SPEC))


def test_a_quantity_that_was_allowed_once_stays_allowed_on_a_live_release(cluster_of: Cluster) -> None:
    few = {"limits": {"memory": 10}}
    service = {"name": "db", "image": "db", "resources": few}
    for spec in ({"containers": [{"image": "a", "resources": few}]}, {"services": [service]}):
        with pytest.raises(SpecError, match="which is 10 bytes: did you mean 10Gi"):
            cluster_of(spec, name="mc")
        assert cluster_of(spec, name="mc", **handed()).installed


@pytest.mark.parametrize(
    "text", ["x", "e30=", base64.b64encode(b"[1]").decode(), 7, ["a"], handed(was=[1])["installed"]]
)
def test_a_record_that_the_chart_did_not_write_is_refused(cluster_of: Cluster, text: Any) -> None:
    with pytest.raises(SpecError) as caught:
        cluster_of(SPEC, installed=text)
    assert str(caught.value) == "installed is not what the chart writes: leave it out"


@pytest.mark.parametrize(
    ("was", "asked", "message"),
    [
        ({"a": "1"}, {"a": "1"}, None),
        ({"a": "1", "b": "x"}, {"a": "2", "b": "y"}, "a can't change on the live MiniCluster mc: it is 1, asked is 2"),
        ({"a": "{}"}, {"a": "[]"}, None),
        ({"a.b": "1"}, {}, "a.b can't change on the live MiniCluster mc: it is 1, asked is (unset)"),
        ({}, {"containers[0].x": ""}, "containers[0].x can't change on the live MiniCluster mc: it is (unset)"),
        # what is new in the chart, or left out, has its default
        ({}, {"flux.connectTimeout": "5s", "pod.labels": "{}"}, None),
        ({"flux.connectTimeout": "5s"}, {}, None),
        ({}, {"backoffLimit": "7"}, "backoffLimit can't change on the live MiniCluster mc: it is 100, asked is 7"),
        # that was the default of an older chart
        ({"flux.logLevel": "6"}, {}, None),
        (
            {"flux.logLevel": "7"},
            {},
            "flux.logLevel can't change on the live MiniCluster mc: it is 7, asked is (unset)",
        ),
        # a list has a path for each item
        (
            {"containers[0].command[0]": "sleep", "containers[0].command[1]": "1"},
            {"containers[0].command": "x"},
            'containers[0].command can\'t change on the live MiniCluster mc: it is ["sleep", "1"], asked is x',
        ),
        (
            {"containers[0].command": "x"},
            {"containers[0].command[0]": "y"},
            'containers[0].command can\'t change on the live MiniCluster mc: it is x, asked is ["y"]',
        ),
        (
            {},
            {"groups[0].cores": "1", "groups[0].name": "gpu"},
            "the group gpu can't be added to the live MiniCluster mc",
        ),
        (
            {"groups[0].cores": "1", "groups[0].name": "gpu", "groups[1].name": "spot"},
            {"groups[0].cores": "2", "groups[0].name": "spot"},
            "the group gpu can't be removed from the live MiniCluster mc",
        ),
        (
            {"groups[0].cores": "1", "groups[0].name": "gpu"},
            {"groups[0].cores": "2", "groups[0].name": "gpu"},
            "groups[0].cores can't change on the live MiniCluster mc: it is 1, asked is 2",
        ),
        (
            {"logging.quiet": "true"},
            {},
            "logging.quiet can't change on the live MiniCluster mc: it is true, asked is false",
        ),
        (
            {"pod.labels": "{}"},
            {"pod.labels.a": "b"},
            "pod.labels.a can't change on the live MiniCluster mc: it is (unset)",
        ),
    ],
)
def test_a_change_of_an_immutable_value_is_refused(
    cluster_of: Cluster, was: dict[str, str], asked: dict[str, str], message: str | None
) -> None:
    if message is None:
        assert cluster_of({}, name="mc", **handed(was=was, asked=asked)).installed
        return
    with pytest.raises(SpecError) as caught:
        cluster_of({}, name="mc", **handed(was=was, asked=asked))
    assert str(caught.value).startswith(message)
    assert str(caught.value).endswith(f"; {LOSS}")


@pytest.mark.parametrize("kept", ["state.capacity", "state.claimName", "archive.path"])
def test_a_refusal_names_the_command_that_keeps_a_stored_queue(cluster_of: Cluster, kept: str) -> None:
    was = {"maxSize": "8", kept: "x"}
    with pytest.raises(SpecError) as caught:
        cluster_of({}, name="mc", **handed(was=was, asked={**was, "maxSize": "9"}))
    assert str(caught.value) == (
        "maxSize can't change on the live MiniCluster mc: it is 8, asked is 9; `minicluster replace mc -n ns` makes "
        f"its Job anew and keeps the queue; or {WAY}"
    )


def test_a_refusal_names_the_command_that_removes_a_burst(cluster_of: Cluster) -> None:
    was = {"maxSize": "2", "flux.bursting.leadBroker.name": "demo"}
    with pytest.raises(SpecError, match=r"asked is 3; `minicluster burst remove demo b0` comes first$"):
        cluster_of({}, name="b0", **handed(was=was, asked={**was, "maxSize": "3"}))


def test_a_contradiction_of_the_install_is_not_refused_later(cluster_of: Cluster) -> None:
    bad: dict[str, Any] = {"maxSize": 4, "flux": {"curveCert": "x", "curveCertSecret": "y"}}
    with pytest.raises(SpecError, match="are both set"):
        cluster_of(bad)
    assert cluster_of({**bad, "size": 3}, **handed()).size == 3
    exposed = {**bad["flux"], "bursting": {"expose": {"type": "", "nodePort": 30000}}}
    for values, message in (
        ({"size": 3, "minSize": 4}, "minSize is 4, size 3"),
        ({"size": 5}, "size is 5, maxSize 4"),
        ({"flux": exposed}, "flux.bursting.expose"),
        ({"services": [{"name": "a", "commands": {"init": "x"}}]}, "commands.init is set"),
    ):
        with pytest.raises(SpecError, match=message):
            cluster_of({**bad, **values}, **handed())


def test_a_former_default_counts_as_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "FORMER_DEFAULTS", {"a": "old"})
    constants = {"a": "new", "b": "new"}
    assert list(upgrade.changes({"a": "old"}, {"a": "new"}, constants)) == []
    assert list(upgrade.changes({"a": "old"}, {}, constants)) == []
    assert list(upgrade.changes({"a": "old"}, {"a": "x"}, constants)) == [("a", "old", "x")]
    assert list(upgrade.changes({"a": "x"}, {"a": "new"}, constants)) == [("a", "x", "new")]
    assert list(upgrade.changes({"b": "old"}, {"b": "new"}, constants)) == [("b", "old", "new")]


@pytest.mark.parametrize("older", sorted(OLDER.glob("*.tar.gz")), ids=lambda path: path.name)
def test_each_default_that_has_changed_since_a_release_is_in_former(older: Path) -> None:
    with tarfile.open(older) as archive:
        text = archive.extractfile("charts/minicluster/values.yaml")
        assert text
        then = dict(upgrade.flat(yaml.safe_load(text)))
    now = dict(upgrade.flat(constants.default_values()))
    others = {path: text for path, text in then.items() if now.get(path, text) != text}
    assert others.items() <= upgrade.FORMER_DEFAULTS.items(), "add them to formerDefaults"


def test_values_are_recorded_by_path_and_text() -> None:
    value = {"a": {"b": [1, {"c": True}], "d": {}, "e": [], "n": None}, "long": "é" * 33, "f": 1.5, "g": "1"}
    assert dict(upgrade.flat(value)) == {
        "a.b[0]": "1",
        "a.b[1].c": "true",
        "a.d": "{}",
        "a.e": "[]",
        "long": "sha256:f696c24ae52af2f9f6d5feaed130d4d13b3cf173ebe41887cfb73d210f77ae87",
        "f": "1.5",
        "g": "1",
    }


def test_each_default_is_recorded_by_path_and_text() -> None:
    found = dict(upgrade.flat(constants.default_values()))
    assert found["flux.connectTimeout"] == "5s"
    assert found["containers[0].image"] == "ubuntu:noble"


def test_a_refusal_has_what_the_chart_found_about_a_change_in_place() -> None:
    installed = handover.Installed("flux", {"a": "1"}, {"a": "2"}, {}, [], "Kubernetes 1.36 can change it")
    with pytest.raises(
        SpecError, match=r"asked is 2; Kubernetes 1\.36 can change it; uninstall flux first, which loses its queue, or "
    ):
        upgrade.refuse(installed, "mc", "lab", {})


def test_the_default_of_a_value_that_there_is_not_is_an_error() -> None:
    assert constants.default_value("pod.onStop") == "cancel"
    with pytest.raises(KeyError):
        constants.default_value("pod.onStops")
