"""``minicluster logs``, ``shell`` and ``copy`` with nodes other than the lead, with a stand-in of kubectl."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from live_kubectl import WAITS, Kubectl, lead, say
from minicluster import cli
from status_samples import RUNNING, UNSCHEDULABLE, asleep, ended, job, suspended, waiting

from tools.clients import Done

RECORD = {"groups[0].name": "gpu", "groups[0].maxSize": "3"}
THERE = "there are 0 to 7, gpu-0 to gpu-2"
ROOM = "lower resources.requests or size; it starts when a Kubernetes node has room"
JOB = "batch.kubernetes.io/job-name=mini-gpu,batch.kubernetes.io/job-completion-index=1"


def node(folder: Path, state: Mapping[str, Any] = RUNNING, name: str = "mini-gpu-1-x", **metadata: Any) -> Any:
    """Return the pod of gpu-1, whose Flux is in another folder than the lead's."""
    found = lead(folder, state, name, **metadata)
    labels = {"batch.kubernetes.io/job-completion-index": "1", "minicluster/group": "gpu"}
    found["metadata"]["labels"] = labels
    [container] = found["spec"]["containers"]
    container["env"] = [{"name": "MINICLUSTER_HOME", "value": str(folder / "there")}]
    return found


def of_group(size: int = 2, end: tuple[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Return the Job of the group."""
    found = job(size, end=end)
    found["metadata"] |= {"name": "mini-gpu", "labels": {"minicluster/group": "gpu"}}
    found["spec"] |= {"parallelism": size} | spec
    return found


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    made = Kubectl(tmp_path)
    made.has(
        job=of_group(),
        job_1=job(2, **RECORD),
        jobs={"items": [of_group()]},
        pods={"items": [lead(tmp_path), node(tmp_path)]},
    )
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "flux-view.sh").write_text("WHERE=there; export WHERE\n")
    return made


def line(second: int, text: str) -> str:
    """Return a line of a log with its time."""
    return f"2030-01-01T12:00:{second:02}.5Z {text}\n"


# logs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["gpu-1", "mini-gpu-1", "9"])
def test_logs_prints_the_log_of_a_node_of_a_group(kubectl: Kubectl, text: str) -> None:
    (kubectl.folder / "logs").write_text(line(1, "one"))
    assert kubectl.run("logs", "mini", "--node", text, "-c", "mine") == Done(0, "one\n", "")
    *_, pods, log = kubectl.asked()
    assert f"--selector={JOB}" in pods
    assert log == "logs mini-gpu-1-x --container=mine --timestamps"


@pytest.mark.parametrize("text", ["0", "mini-0"])
def test_the_node_of_the_lead_is_the_lead(kubectl: Kubectl, text: str) -> None:
    (kubectl.folder / "logs").write_text(line(1, "one"))
    assert kubectl.run("logs", "mini", "--node", text) == Done(0, "one\n", "")
    assert kubectl.asked()[-1] == "logs mini-0-x --container=mini --timestamps"


def test_logs_follows_a_node_through_its_pods_to_the_end_of_its_job(kubectl: Kubectl) -> None:
    folder = kubectl.folder
    first, second = node(folder), node(folder, name="mini-gpu-1-y", creationTimestamp="2030-01-01T11:50:00Z")
    kubectl.has(
        pods_1={"items": [lead(folder), first]},
        pods_2={"items": [first]},
        pods_3={"items": []},
        pods_4={"items": [{**second, "status": UNSCHEDULABLE}]},
        pods_5={"items": [second]},
        pods={"items": [{**second, "status": ended(0)}]},
        job_3=of_group(1),
        job_7=of_group(end=("Complete", "CompletionsReached")),
    )
    (folder / "logs.1").write_text(line(1, "one"))
    (folder / "logs.2").write_text(line(1, "one") + line(2, "two"))
    (folder / "logs").write_text(line(4, "next"))
    assert kubectl.run("logs", "mini", "-f", "--node", "gpu-1") == Done(
        0,
        "one\ntwo\nnext\n",
        say(
            "mini-gpu-1 has no pod, because the size is 1: `minicluster scale mini gpu=2`",
            "mini-gpu-1 was replaced: the log goes on with pod mini-gpu-1-y",
            f"mini-gpu-1 is Pending: Unschedulable: 1 Insufficient cpu: {ROOM}",
            "mini-gpu-1 has ended: Complete",
        ),
    )


@pytest.mark.parametrize(
    ("own", "group", "why"),
    [
        (
            job(2, **RECORD),
            of_group(1),
            "mini-gpu-1 has no pod, because the size is 1: `minicluster scale mini gpu=2`",
        ),
        (job(2, **RECORD), of_group(), "mini-gpu-1 has no pod: `kubectl describe job mini-gpu` says why"),
        (suspended(annotation="a person"), of_group(suspend=True), "Suspended: by a person: "),
        (job(end=("Complete", "SuccessPolicy")), of_group(), "mini has ended (exit code 0): Complete"),
    ],
)
def test_logs_says_why_a_node_has_no_pod(kubectl: Kubectl, own: Any, group: Any, why: str) -> None:
    own["metadata"]["annotations"]["minicluster/immutable"] = json.dumps({"maxSize": "8", **RECORD})
    kubectl.has(job=group, job_1=own, job_2=own, pods={"items": [lead(kubectl.folder)]}, pods_2={"items": []})
    done = kubectl.run("logs", "mini", "--node", "gpu-1")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"minicluster: there is no log: {why}")


@pytest.mark.parametrize("command", ["logs", "shell"])
def test_an_unknown_node_is_refused_by_name(kubectl: Kubectl, command: str) -> None:
    done = kubectl.run(command, "mini", "--node", "cpu-1")
    assert done == Done(1, "", say(f"mini has no node cpu-1: {THERE}"))


# shell ------------------------------------------------------------------------------------------------------------


def test_a_shell_opens_on_a_node_of_a_group(kubectl: Kubectl) -> None:
    done = kubectl.run("shell", "mini", "--node", "gpu-1", stdin="echo $WHERE; exit 3")
    assert done == Done(3, "there\n", "")
    assert kubectl.asked()[-1].startswith("exec mini-gpu-1-x --container=mini --stdin -- ")


def test_a_shell_waits_for_a_node_that_starts(kubectl: Kubectl) -> None:
    folder = kubectl.folder
    starts = node(folder, UNSCHEDULABLE)
    kubectl.has(
        pods_1={"items": [lead(folder), starts]},
        # its own; the lead, which needs no quorum for that; its own
        pods_2={"items": [starts]},
        pods_3={"items": [lead(folder, WAITS)]},
        pods_4={"items": []},
        pods_5={"items": [starts]},
        pods={"items": [node(folder)]},
    )
    assert kubectl.run("shell", "mini", "--node", "gpu-1", stdin="echo $WHERE") == Done(
        0,
        "there\n",
        say(
            "mini-gpu-1 has no pod: `kubectl describe job mini-gpu` says why",
            f"mini-gpu-1 is Pending: Unschedulable: 1 Insufficient cpu: {ROOM}",
        ),
    )


@pytest.mark.parametrize(
    ("words", "group", "pods", "why"),
    [
        (["--no-wait"], of_group(), [UNSCHEDULABLE], f"is Pending: Unschedulable: 1 Insufficient cpu: {ROOM}"),
        ([], of_group(1), [], "has no pod, because the size is 1: `minicluster scale mini gpu=2`"),
        (
            [],
            of_group(1, suspend=True),
            [],
            "has no pod, because the size is 0: `minicluster scale mini gpu=2`",
        ),
        (
            [],
            of_group(end=("Failed", "PodFailurePolicy")),
            [ended(1)],
            "has ended: Failed: PodFailurePolicy: said why",
        ),
    ],
)
def test_a_shell_does_not_wait_for_a_node_that_does_not_come(
    kubectl: Kubectl, words: list[str], group: Any, pods: list[Any], why: str
) -> None:
    kubectl.has(job=group, pods={"items": [lead(kubectl.folder), *(node(kubectl.folder, state) for state in pods)]})
    done = kubectl.run("shell", "mini", "--node", "gpu-1", *words)
    assert done == Done(1, "", say(f"mini-gpu-1 {why}"))


@pytest.mark.parametrize("words", [("shell", "mini"), ("logs", "mini", "-f")], ids=str)
def test_a_node_that_can_not_start_ends_the_wait_for_it(kubectl: Kubectl, words: tuple[str, ...]) -> None:
    bad = node(kubectl.folder, waiting("InvalidImageName", "no image"))
    kubectl.has(pods={"items": [lead(kubectl.folder), bad]})
    done = kubectl.run(*words, "--node", "gpu-1")
    way = "correct the image's name, or set pod.imagePullSecrets for its registry"
    why = f"mini can't start: mini-gpu-1 is Pending: InvalidImageName: no image: {way}"
    assert (done.code, done.out, done.err.splitlines()[-1]) == (1, "", f"minicluster: {why}")


def test_a_shell_on_a_node_wakes_a_minicluster_that_sleeps(kubectl: Kubectl) -> None:
    own = asleep()
    own["metadata"]["annotations"]["minicluster/immutable"] = json.dumps({"maxSize": "8", **RECORD})
    nobody: dict[str, Any] = {"items": []}
    kubectl.has(
        # none when it is found, as a node, as the lead; then what wakes it looks for a lead
        **{f"pods_{number}": nobody for number in range(1, 7)},
        **{f"job_{number}": own for number in range(1, 6)},
        patch=job(2, **RECORD),
    )
    done = kubectl.run("shell", "mini", "--node", "gpu-1", stdin="echo $WHERE")
    assert (done.code, done.out) == (0, "there\n")
    assert say("mini is suspended, idle for 60 s: waking it") in done.err
    assert sum("patch job mini " in words for words in kubectl.asked()) == 1


def test_kueue_is_named_where_it_holds_a_group(kubectl: Kubectl) -> None:
    held = of_group(suspend=True)
    held["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "gpus"
    kubectl.has(job=held, pods={"items": [lead(kubectl.folder)]})
    done = kubectl.run("shell", "mini", "--node", "gpu-1", "--no-wait")
    assert done == Done(1, "", say("mini-gpu-1 has no pod: Kueue's queue gpus holds the Job mini-gpu"))


# copy -------------------------------------------------------------------------------------------------------------


def test_files_come_to_a_node_and_from_it(kubectl: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "pod").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("mine").write_text("text")
    assert kubectl.run("copy", "--node", "gpu-1", "mine", f"mini:{tmp_path}/pod") == Done(
        0, "", say(f"copied mine to mini-gpu-1:{tmp_path}/pod/mine, 4 bytes")
    )
    assert (tmp_path / "pod" / "mine").read_text() == "text"
    kubectl.has(job_2=job(2, **RECORD))
    done = kubectl.run("copy", "--node", "gpu-1", f"mini:{tmp_path}/pod/mine", "back")
    assert done == Done(0, "", say(f"copied mini-gpu-1:{tmp_path}/pod/mine to back, 4 bytes"))
    assert Path("back").read_text() == "text"
    execs = [words for words in kubectl.asked() if words.startswith("exec ")]
    assert len(execs) == 4
    assert all(words.startswith("exec mini-gpu-1-x ") for words in execs)
    kubectl.has(job_3=job(2, **RECORD))
    done = kubectl.run("copy", "--node", "gpu-1", f"mini:{tmp_path}/none", "back")
    assert done == Done(1, "", say(f"{tmp_path}/none: there is no such file or folder on pod mini-gpu-1-x"))


def test_all_nodes_and_one_node_are_refused_together(kubectl: Kubectl) -> None:
    done = kubectl.run("copy", "--all", "--node", "gpu-1", "mine", "mini:/tmp")
    line = "--all copies to all nodes, and --node gpu-1 to one: drop one of them; see `minicluster copy --help`"
    assert done == Done(2, "", say(line))


def test_a_copy_to_all_nodes_knows_those_of_groups(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    (tmp_path / "pod").mkdir()
    kubectl.flux('shift 6; echo "$@"')
    said = (f"copied {tmp_path}/mine to mini-0:{tmp_path}/pod/mine, 0 bytes", "the other nodes have it, too")
    assert kubectl.run("copy", "--all", str(tmp_path / "mine"), f"mini:{tmp_path}/pod") == Done(
        0, "minicluster 0  mini-0 mini-gpu-1\n", say(*said)
    )
    assert any(
        "--selector=app.kubernetes.io/instance=mini,app.kubernetes.io/component=broker" in words
        for words in kubectl.asked()
    )


# completion -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["logs", "mini", "--node", ""], "0\ngpu-0\ngpu-1\n:4\n"),
        (["shell", "mini", "--node", "gpu"], "gpu-0\ngpu-1\n:4\n"),
        (["logs", "mini", "--node", "mini-g"], "mini-gpu-0\nmini-gpu-1\n:4\n"),
        (["logs", "--node", ""], ":4\n"),
    ],
)
def test_a_shell_completes_the_nodes_that_have_pods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], expected: str
) -> None:
    (tmp_path / "kubectl").write_text('#!/bin/sh\necho "$*" >"$0.log"; echo mini-0 mini-gpu-0 mini-gpu-1 mini-gpu-1\n')
    (tmp_path / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert cli.completions(words) == expected


def test_a_shell_completes_no_group_as_a_minicluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kubectl").write_text('#!/bin/sh\necho "$*" >"$0.log"\n')
    (tmp_path / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert cli.completions(["logs", ""]) == ":4\n"
    assert "--selector=app.kubernetes.io/name=minicluster,!minicluster/group" in (tmp_path / "kubectl.log").read_text()
