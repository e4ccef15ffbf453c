"""`minicluster run` on a real API server. In its pods nothing runs: `end` ends the work."""

import dataclasses
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from minicluster.kube.kubectl import Kubernetes
from minicluster.sdk import ArgumentError, EndedError, MiniCluster, ReleaseError, Result, WaitTimeoutError
from quick import take_environment
from simulated import end
from support import BIN, Done, Helm, Process

from tools import tenant
from tools.releases import Release

Start = Callable[..., Process]
pytestmark = [
    pytest.mark.without("security", why="a list of values replaces that of an earlier file"),
]
#: No kubelet has a log here: this one says that its pod has printed a line
KUBECTL = f"""#!/bin/sh
case " $* " in *" logs "*) echo '2030-01-01T12:00:01.5Z out'; exit ;; esac
exec {BIN}/kubectl "$@"
"""
WORK = ("--", "sh", "-c", 'echo "a  $B"')


@pytest.fixture
def start(connected: Helm, release: Release, tmp_path: Path) -> Iterator[Start]:
    """Starts `minicluster run` in the release's namespace, with each Helm."""
    (tmp_path / "kubectl").write_text(KUBECTL)
    (tmp_path / "kubectl").chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{connected.environment['PATH']}"
    environment = connected.environment | {"HELM_BIN": connected.name, "PATH": path}
    (tmp_path / "namespace.json").write_text(json.dumps({"pod": {"labels": tenant.LABELS}}))
    where = ["--namespace", release.namespace, "-f", str(tmp_path / "namespace.json")]
    started: list[Process] = []

    def start(*words: str, name: str = "mc") -> Process:
        line = ["minicluster", "run", *where, *(["--name", name] if name else []), *words]
        started.append(Process(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        # pytest shows this of a test that fails
        print(*process.communicate(), sep="")


def done(process: Process) -> Done:
    """Return how a process ends."""
    out, err = process.communicate(timeout=90)
    return Done(process.returncode, out, err)


def releases(release: Release) -> list[str]:
    """Return the names of the releases that Helm knows."""
    listed = release.helm.ok("list", "--namespace", release.namespace, "--output", "json")
    return [one["name"] for one in json.loads(listed)]


@pytest.mark.parametrize("code", [0, 7])
def test_run_ends_with_the_code_of_the_work_and_leaves_nothing(release: Release, start: Start, code: int) -> None:
    process = start("--image", "a", "-N", "2", "-n", "4", "--cpu", "2", "--timeout", "5m", *WORK)
    release.cluster.wait("two pods", lambda: bool(release.items("jobs")) and len(release.live_pods()) == 2)
    release.running(2)
    spec = release.get("job")["spec"]
    container = spec["template"]["spec"]["containers"][0]
    assert (spec["completions"], spec["activeDeadlineSeconds"], container["image"]) == (2, 310, "a")
    assert container["resources"] == {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}
    files = release.get("configmap", "mc-config")["data"]
    assert files["command"] == "exec sh -c 'echo \"a  $B\"'\n"
    end(release, 0, code)
    ended = done(process)
    assert (ended.code, ended.out) == (code, "out\n")
    assert f"minicluster: installed mc in namespace {release.namespace}\n" in ended.err
    assert f"minicluster: mc has ended (exit code {code}): " in ended.err
    assert release.items() == []


@pytest.mark.any_helm
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_removes_the_release(release: Release, start: Start, number: int) -> None:
    process = start("-N", "2", *WORK)
    release.cluster.wait("the Job", lambda: bool(release.items("jobs")))
    assert process.stderr
    assert process.stderr.readline().startswith("minicluster: installed mc in ")
    process.send_signal(number)
    ended = done(process)
    assert ended.code == 128 + number
    assert ended.err.splitlines()[-1] == "minicluster: removing mc"
    assert release.items() == []


@pytest.mark.any_helm
def test_a_signal_during_the_install_leaves_nothing(release: Release, start: Start) -> None:
    process = start(*WORK)
    secret = "--selector=owner=helm"
    release.cluster.wait("the release", lambda: bool(release.items("secrets", secret)))
    process.send_signal(signal.SIGINT)
    assert done(process).code == 128 + signal.SIGINT
    assert release.items() == []


@pytest.mark.any_helm
def test_keep_leaves_a_release_that_has_ended(release: Release, start: Start) -> None:
    process = start("--keep", *WORK)
    release.cluster.wait("the Job", lambda: bool(release.items("jobs")))
    release.running(1)
    end(release, 0, 7)
    ended = done(process)
    assert ended.code == 7
    assert ended.err.splitlines()[-1] == f"minicluster: mc stays: `helm uninstall mc -n {release.namespace}` removes it"
    assert releases(release) == ["mc"]


@pytest.mark.any_helm
def test_what_is_refused_leaves_nothing(release: Release, start: Start, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("maxSize: 2\n")
    refusals: list[tuple[Any, int, str]] = [
        (("-N", "4", "-f", str(values), *WORK), 1, "size is 4, maxSize 2: lower size"),
        (("-f", str(values)), 1, "mc has nothing to run: give a command after --, or values with one"),
        (("--memory", "much", *WORK), 2, "much"),
        (("--set", "interactive=true", *WORK), 1, "interactive"),
        (("--set", "no=1", *WORK), 1, "no is not a field"),
    ]
    for words, code, message in refusals:
        ended = done(start(*words))
        assert (ended.code, ended.out, ended.err.count("\n")) == (code, "", 1), ended
        assert message in ended.err
    assert release.items() == []
    assert releases(release) == []


def test_run_leaves_a_release_of_the_same_name_alone(release: Release, start: Start) -> None:
    release.install(interactive=True)
    uids = release.running(1)
    ended = done(start(*WORK))
    assert (ended.code, ended.err.count("\n")) == (1, 1)
    assert ended.err.startswith("minicluster: there is a release mc in ")
    assert release.running(1) == uids


@pytest.mark.any_helm
def test_run_takes_the_command_from_values_and_the_runner_from_its_mark(
    release: Release, start: Start, tmp_path: Path
) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(
        "logging: {quiet: false}\n"
        "containers: [{name: side, image: s, command: idle}, {name: main, image: m, runFlux: true, command: work}]\n"
    )
    for words, command in (((), "work"), (WORK, "exec sh -c 'echo \"a  $B\"'\n")):
        process = start("-f", str(values), "--set", "tasks=3", *words)
        release.cluster.wait("the Job", lambda: bool(release.items("jobs")))
        release.running(1)
        files = release.get("configmap", "mc-config")["data"]
        assert (files["command"], files["side.command"]) == (command, "idle")
        assert "mc_quiet=''" in files["settings.sh"]
        end(release, 0, 0)
        assert done(process).code == 0
    assert release.items() == []


@pytest.mark.any_helm
def test_two_runs_at_once_have_names_of_their_own(release: Release, start: Start) -> None:
    processes = [start("-N", "1", *WORK, name="") for _ in range(2)]
    release.cluster.wait("two Jobs", lambda: len(release.items("jobs")) == 2)
    names = [job["metadata"]["name"] for job in release.items("jobs")]
    for name in names:
        one = dataclasses.replace(release, name=name)
        one.running(1)
        end(one, 0, 0)
    assert [done(process).code for process in processes] == [0, 0]
    assert all(name.startswith("run-") for name in names)
    # nobody waits for the end of pods whose names no other release can have
    release.cluster.wait("nothing", lambda: release.items() == [])


@pytest.mark.any_helm
def test_a_killed_run_leaves_a_release_that_its_deadline_ends(release: Release, start: Start) -> None:
    process = start("--timeout", "10s", *WORK)
    release.cluster.wait("the Job", lambda: bool(release.items("jobs")))
    release.running(1)
    process.kill()
    done(process)
    assert releases(release) == ["mc"]

    def state() -> str:
        listed = release.cluster.run("minicluster", "list", "-n", release.namespace, "-o", "json").out
        return str(json.loads(listed)[0]["state"])

    assert state() in ("Starting", "Running")
    assert release.condition("Failed", 60)["reason"] == "DeadlineExceeded"
    assert state() == "Failed"


@pytest.mark.any_helm
def test_the_timeout_ends_a_run_and_removes_it(release: Release, start: Start) -> None:
    ended = done(start("--timeout", "8s", *WORK))
    assert (ended.code, ended.out) == (1, "out\n")
    assert f"minicluster: mc in namespace {release.namespace}: gave up after 8 s\n" in ended.err
    assert release.items() == []


@pytest.fixture
def _sdk(connected: Helm, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a Python that uses the SDK, with each Helm."""
    take_environment(monkeypatch, connected)
    # no kubelet keeps a log
    log = (b"2026-01-01T00:00:00Z out\n", b"2026-01-01T00:00:01Z more\n")
    monkeypatch.setattr(Kubernetes, "log", lambda *_, **__: (part for part in log))


@pytest.mark.usefixtures("_sdk")
def test_the_sdk_runs_a_command_and_leaves_nothing(release: Release) -> None:
    containers = [{"name": "side", "image": "s"}, {"image": "m", "runFlux": True}]
    values = tenant.values({"containers": containers}, release.world)
    with ThreadPoolExecutor() as pool:
        states: list[str] = []
        future = pool.submit(
            MiniCluster.run, "work 'a b'", release.namespace, values, name="mc", nodes=2, progress=states.append
        )
        release.cluster.wait("the Job", lambda: bool(release.items("jobs")))
        release.running(2)
        assert release.get("configmap", "mc-config")["data"]["command"] == "exec work 'a b'\n"
        end(release, 0, 7)
        assert future.result(60) == Result(7, "out\nmore\n", "")
    assert release.items() == []


@pytest.mark.any_helm
@pytest.mark.usefixtures("_sdk")
def test_an_sdk_run_that_fails_leaves_nothing(release: Release) -> None:
    with pytest.raises(ReleaseError, match="size is 4, maxSize 2: lower size"):
        MiniCluster.run("work", release.namespace, {"maxSize": 2}, nodes=4)
    with pytest.raises(ReleaseError, match=r"run-\w{5} has nothing to run"):
        MiniCluster.run(namespace=release.namespace)
    unknown: Any = {"cores": 4}
    with pytest.raises(ArgumentError, match="cores is not an option of a run: give one of image, nodes, "):
        MiniCluster.run("work", release.namespace, **unknown)
    with pytest.raises(WaitTimeoutError):
        MiniCluster.run("work", release.namespace, timeout=6)
    with ThreadPoolExecutor() as pool:
        future = pool.submit(MiniCluster.run, "work", release.namespace, name="mc", timeout=120)
        release.cluster.wait("the Job", lambda: bool(release.items("jobs")))
        # an uninstall fails while the install has yet to say that it is through
        release.cluster.wait("the release", lambda: release.revisions() == [(1, "deployed")])
        release.ok("uninstall")
        with pytest.raises(EndedError, match="Gone"):
            future.result(60)
    assert release.items() == []
