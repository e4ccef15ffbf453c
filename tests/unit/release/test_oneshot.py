"""A release for one run: its name, and the values that its options become."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from minicluster.errors import SpecError, ToolError
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.names import LABEL
from minicluster.kube.tool import CommandError
from minicluster.release import helm, oneshot
from minicluster.release.oneshot import Oneshot, cluster_values, made_up_name, runner_values

CALLS = list[tuple[str, ...]]


def test_a_made_up_name_is_a_label_and_new_each_time() -> None:
    names = {made_up_name() for _ in range(50)}
    assert len(names) == 50
    assert all(re.fullmatch(LABEL, name) and re.fullmatch("run-[a-z0-9]{5}", name) for name in names)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, {}),
        ({"nodes": 4, "tasks": 16}, {"size": 4, "tasks": 16}),
        ({"tasks": 0}, {"tasks": 0}),
        ({"seconds": 0.2}, {"deadlineSeconds": 11}),
        ({"seconds": 90.5}, {"deadlineSeconds": 101}),
    ],
)
def test_options_become_values_of_the_cluster(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    assert cluster_values(Oneshot(**asked)) == {"cleanup": False, **expected}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, {}),
        ({"image": "a:1", "command": ("a b", "")}, {"image": "a:1", "command": ["a b", ""]}),
        ({"cpu": "2"}, {"resources.limits.cpu": "2", "resources.requests.cpu": "2"}),
        ({"memory": "4Gi"}, {"resources.limits.memory": "4Gi", "resources.requests.memory": "4Gi"}),
        ({"gpus": 0}, {r"resources.limits.nvidia\.com/gpu": "0"}),
        ({"gpus": 2}, {r"resources.limits.nvidia\.com/gpu": "2"}),
    ],
)
def test_options_become_values_of_the_runner(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    assert runner_values(Oneshot(**asked), 1) == {f"containers[1].{path}": value for path, value in expected.items()}


class FakeHelm:
    """Notes what Helm is asked, and what values it gets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: ToolError | None = None) -> None:
        self.calls: CALLS = []
        self.stdin = ""

        def run(_: Kubernetes, *words: str, stdin: str = "", **__: Any) -> str:
            self.calls.append(words)
            self.stdin = stdin
            if error:
                raise error
            return ""

        monkeypatch.setattr(Kubernetes, "helm", run)


def test_install_gives_helm_the_exact_words_and_the_values_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[Sequence[str]] = []

    def template(release: helm.OfflineRelease, _: str) -> bytes:
        rendered.append(release.values)
        return b'{"containers": [{"name": "side"}, {"name": "main", "runFlux": true}]}'

    monkeypatch.setattr(helm, "template", template)
    fake = FakeHelm(monkeypatch)
    words = ["lmp", 'a  "b"', "$HOME,{x}", "é"]
    asked = Oneshot("mine", command=words, nodes=2, files=["f.yaml"], sets=["a=b"], key="k")
    oneshot.install(Kubernetes("", "lab"), asked, oneshot.planned(asked)[1])
    given = ("--values=f.yaml", "--set=a=b")
    size = ("--set-json=cleanup=false", "--set-json=size=2")
    assert rendered == [["--values", "-", *given, *size]]
    command = r'--set-json=containers[1].command=["lmp", "a  \"b\"", "$HOME,{x}", "é"]'
    label = ("--labels", "minicluster-run=k", "--post-renderer", "minicluster")
    assert fake.calls == [("install", "mine", str(helm.CHART), "--values", "-", *given, *size, command, *label)]
    assert fake.stdin == "\ntasks: 0\nlogging:\n  quiet: true\n"


@pytest.mark.parametrize(
    ("asked", "tasks"), [({}, None), ({"nodes": 2}, 0), ({"nodes": 2, "values": {"tasks": 5}}, 5)], ids=str
)
def test_with_nodes_there_is_one_task_on_each_unless_the_values_have_tasks(asked: Any, tasks: int | None) -> None:
    assert oneshot._base(Oneshot(**asked)).get("tasks") == tasks


def test_the_runner_is_the_one_container_that_does_not_say_that_it_is_none() -> None:
    containers = [{"name": "side", "runFlux": False}, {"name": "main"}, {"name": "more", "runFlux": False}]
    _, words = oneshot.planned(Oneshot(name="a", command=["x"], values={"containers": containers}))
    assert '--set-json=containers[1].command=["x"]' in words


def test_the_users_logging_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeHelm(monkeypatch)
    values = {"logging": {"quiet": False, "timed": True}, "size": 3, "containers": [{"command": "work"}]}
    asked = Oneshot(values=values)
    oneshot.install(Kubernetes(), asked, oneshot.planned(asked)[1])
    assert oneshot._base(asked)["logging"] == {"quiet": False, "timed": True}
    assert "quiet: false" in fake.stdin
    assert "size: 3" in fake.stdin
    assert not [word for word in fake.calls[0] if "command" in word]
    assert oneshot._base(Oneshot(values={"logging": True})) == {"logging": True}


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({}, SpecError, "mine has nothing to run: give a command after --, or values with one"),
        ({"values": {"containers": [{"image": "a"}]}}, SpecError, "mine has nothing to run"),
        ({"values": {"containers": "a"}}, SpecError, "mine has nothing to run"),
        ({"command": ["a\udcff"]}, SpecError, r"the word 'a\\udcff' of the command is not UTF-8"),
        (
            {"command": ["a"], "nodes": 2, "tasks": 1},
            SpecError,
            "1 tasks are fewer than the 2 nodes: ",
        ),
        ({"name": "Bad_Name", "command": ["a"]}, ToolError, "'Bad_Name' can't be a release's name"),
    ],
)
def test_what_can_not_run_is_refused(asked: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        oneshot.planned(Oneshot(**{"name": "mine", **asked}))


def test_the_error_of_an_install_leaves_out_the_words_of_helm(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "INSTALLATION FAILED: error on minicluster: size is 4, maxSize 2 [the rest of this line is Helm's]: x"
    FakeHelm(monkeypatch, CommandError("helm install", said))
    with pytest.raises(ToolError, match=r"^size is 4, maxSize 2$"):
        oneshot.install(Kubernetes(), Oneshot(), ["install", "demo"])
