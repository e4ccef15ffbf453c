"""What a matrix runs at one size."""

import json
from typing import Any

import pytest
from minicluster.errors import SpecError
from minicluster.experiments.matrix import plan
from minicluster.release import helm
from minicluster.release.oneshot import Oneshot, planned
from minicluster.render import constants
from minicluster.render.stream import API_GROUP

WORDS = ("lmp", "-in", "a b")


def asked_for(monkeypatch: pytest.MonkeyPatch, runner: dict[str, Any], asked: Oneshot, **values: Any) -> Oneshot:
    """Return what is asked, with a Helm that renders values; it takes the size from its words."""

    def template(release: helm.OfflineRelease, stdin: str = "") -> bytes:
        if release.chart != str(helm.CHART):  # the values as they are given
            return json.dumps({"containers": [runner], **values}).encode()
        assert stdin in ("", "\ntasks: 0\nlogging:\n  quiet: true\n")
        own = [word.removeprefix("--set-json=").partition("=") for word in release.values if "set-json" in word]
        given = {name: json.loads(value) for name, _, value in own}
        command = {"command": given["containers[0].command"]} if "containers[0].command" in given else {}
        sizes = {name: given[name] for name in ("size", "tasks") if name in given}
        spec = {
            **constants.default_values(),
            "tasks": 0,
            **sizes,
            "maxSize": sizes["size"],
            **values,
            "containers": [{**runner, **command}],
        }
        spec = {key: value for key, value in spec.items() if key != "global"}
        document = {"apiVersion": f"{API_GROUP}/v1", "kind": "MiniCluster", "metadata": {"name": release.name}}
        return json.dumps({**document, "spec": json.dumps(spec)}).encode()

    monkeypatch.setattr(helm, "template", template)
    return asked


@pytest.mark.parametrize(
    ("asked", "runner", "words", "tasks"),
    [
        ({"command": WORDS}, {}, ["-N", "4", *WORDS], 0),
        ({"command": WORDS, "tasks": 8}, {}, ["-N", "4", "-n", "8", *WORDS], 8),
        ({"command": WORDS, "tasks": 0}, {"command": "other"}, ["-N", "4", *WORDS], 0),
        ({}, {"command": "a | b"}, ["-N", "4", "sh", "-c", "a | b"], 0),
        ({}, {"command": ["a", "b c"]}, ["-N", "4", "a", "b c"], 0),
    ],
)
def test_a_size_has_its_values_and_its_words(
    monkeypatch: pytest.MonkeyPatch, asked: Any, runner: Any, words: list[str], tasks: int
) -> None:
    one = asked_for(monkeypatch, runner, Oneshot("mc", seconds=60, files=["f.yaml"], **asked))
    experiment = plan(one, 4)
    job = experiment.job
    assert (job.size, list(job.words)) == (4, words)
    assert (job.values["tasks"], job.values["deadlineSeconds"]) == (
        tasks,
        constants.default_values()["deadlineSeconds"],
    )
    assert (experiment.asked.name, experiment.asked.nodes, experiment.asked.is_idle, experiment.asked.seconds) == (
        "mc-4",
        4,
        True,
        60,
    )
    _, install = planned(experiment.asked)
    assert install[-5] == "--set-string=containers[0].command="
    assert "--set-json=deadlineSeconds=70" in install


def test_a_run_is_never_put_back_into_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    one = asked_for(
        monkeypatch, {}, Oneshot("mc", command=WORDS), pod={**constants.default_values()["pod"], "onStop": "requeue"}
    )
    assert list(plan(one, 2).job.words) == ["-N", "2", "--setattr=user.minicluster.requeue=0", *WORDS]


def test_the_values_have_tasks_and_flags_but_no_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    flux = {**constants.default_values()["flux"], "optionFlags": "-o cpu-affinity=off -c 2", "curveCert": "secret"}
    one = asked_for(monkeypatch, {}, Oneshot("mc", command=WORDS), tasks=6, flux=flux)
    monkeypatch.setattr("minicluster.release.oneshot.load", loaded)
    job = plan(one, 2).job
    assert list(job.words) == ["-N", "2", "-n", "6", "-o", "cpu-affinity=off", "-c", "2", *WORDS]
    assert job.values["flux"]["curveCert"] == ""


def test_the_given_values_are_those_that_are_not_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    flux = {**constants.default_values()["flux"], "optionFlags": "-c 2", "curveCert": "secret"}
    logging = {**constants.default_values()["logging"], "quiet": True}
    one = asked_for(monkeypatch, {}, Oneshot("mc", command=WORDS), tasks=0, flux=flux, logging=logging)
    monkeypatch.setattr("minicluster.release.oneshot.load", loaded)
    job = plan(one, 2).job
    assert set(job.given) < set(job.values)
    assert {key: job.given[key] for key in ("size", "flux", "logging", "tasks")} == {
        "size": 2,
        "flux": {"optionFlags": "-c 2"},
        "logging": {"quiet": True},
        "tasks": 0,
    }
    assert "pod" not in job.given


def loaded(document: dict[str, Any]) -> Any:
    from minicluster.render.model import MiniClusterModel  # noqa: PLC0415

    return MiniClusterModel("mc", "default", {}, {}, json.loads(document["spec"]), "")


@pytest.mark.parametrize(
    ("asked", "runner", "values", "message"),
    [
        ({}, {"command": "a", "batch": True}, {}, "the values have batch, and a matrix submits a command by itself"),
        ({}, {"command": "a", "launcher": True}, {}, "the values have launcher, "),
        ({}, {"commands": {"script": "a"}}, {}, "the values have commands.script, and .*: drop commands.script"),
        ({}, {"command": "a", "commands": {"prefix": "strace"}}, {}, "the values have commands.prefix, "),
        ({}, {"command": "a"}, {"size": 3}, "the values set size to 3, and a matrix has its own sizes"),
        ({"tasks": 2}, {"command": "a"}, {}, "2 tasks are fewer than the 4 nodes: ask for at least 4, or 0 "),
        ({}, {"command": "a"}, {"tasks": 3}, "3 tasks are fewer than the 4 nodes"),
        (
            {},
            {"command": "a", "cores": 1},
            {"tasks": 4, "groups": [{"name": "gpu", "size": 2}]},
            "4 tasks are fewer than the 6 nodes: ask for at least 6, or 0 ",
        ),
        ({}, {"command": "a"}, {"maxSize": 2}, "size is 4, maxSize 2"),
        (
            {},
            {"command": "a"},
            {"flux": {**constants.default_values()["flux"], "submitCommand": "srun"}},
            "flux.submitCommand is 'srun', and a matrix has its own: drop it",
        ),
        (
            {},
            {"command": "a"},
            {"flux": {**constants.default_values()["flux"], "submitCommand": "flux submit", "optionFlags": "--cc=1-3"}},
            "flux.optionFlags has --cc, and a run of a matrix is one job: drop it",
        ),
    ],
)
def test_what_is_not_one_job_is_refused(
    monkeypatch: pytest.MonkeyPatch, asked: Any, runner: Any, values: Any, message: str
) -> None:
    one = asked_for(monkeypatch, runner, Oneshot("mc", files=["f.yaml"], **asked), **values)
    with pytest.raises(SpecError, match=message):
        plan(one, 4)
