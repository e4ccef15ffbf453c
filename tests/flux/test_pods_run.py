"""`minicluster run`, and the same in the SDK, on a real Kubernetes."""

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from minicluster.sdk import MiniCluster
from real_cluster import IN_PODS
from support import Process

from tools import testbed
from tools.clients import Done, until
from tools.releases import STEP_SECONDS, FluxRelease
from tools.testbed import NAME

pytestmark = IN_PODS

FOUR_CORES = {"cores": 4}
NASTY = ["a  b", '"', "'", "$HOME", "`id`", "\\", "*", "", "--", "é", "x\ny", "{},[1]"]
Start = Callable[..., Process]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[FluxRelease]:
    """A namespace for runs, and how the tests see it."""
    with testbed.new_namespace() as namespace:
        yield testbed.release(namespace, {}, tmp_path)


@pytest.fixture
def start(cluster: FluxRelease, tmp_path: Path) -> Iterator[Start]:
    """Starts `minicluster run` with the images of the tests."""
    started: list[Process] = []

    def start(*words: str, runner: dict[str, Any] = FOUR_CORES) -> Process:
        values = tmp_path / "run.json"
        values.write_text(json.dumps(testbed.values_of({}, runner)))
        line = ("minicluster", "run", "--namespace", cluster.namespace, "--name", NAME, "-f", str(values), *words)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(Process(line, env=cluster.cluster.env, text=True, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def done(process: Process, seconds: float = 2 * STEP_SECONDS) -> Done:
    """Return how a process ends."""
    out, err = process.communicate(timeout=seconds)
    return Done(process.returncode, out, err)


def test_run_prints_what_the_work_prints_and_leaves_nothing(cluster: FluxRelease, start: Start) -> None:
    begin = time.monotonic()
    ended = done(start("-N", "2", "-n", "2", "--timeout", "5m", "--", "printf", "<%s>\n", *NASTY))
    print(f"{time.monotonic() - begin:.1f} s from the command to its end")
    assert ended.code == 0
    # two tasks, whose lines may mix
    assert sorted(ended.out.splitlines()) == sorted("".join(f"<{word}>\n" for word in NASTY * 2).splitlines())
    assert ended.err.splitlines()[0] == f"minicluster: installed {NAME} in namespace {cluster.namespace}"
    assert f"minicluster: {NAME} has ended (exit code 0): Complete" in ended.err
    assert cluster.items() == []


def test_run_ends_with_the_exit_code_of_the_work(cluster: FluxRelease, start: Start) -> None:
    ended = done(start("--", "sh", "-c", "echo out; exit 7"))
    assert (ended.code, ended.out.splitlines()[0]) == (7, "out")
    assert ended.out.splitlines()[-1] == "minicluster: the job failed with exit code 7"
    last = ended.err.splitlines()[-1]
    assert last == f"minicluster: {NAME} has ended (exit code 7): Failed: the work failed with exit code 7: out"
    assert cluster.items() == []


#: Of the tasks, the first one says that it begins
BEGINS = '[ "$FLUX_TASK_RANK" != 0 ] || echo begun; exec sleep 900'


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_work_and_leaves_nothing(cluster: FluxRelease, start: Start, number: int) -> None:
    grace = "pod.terminationGracePeriodSeconds=600"
    process = start("-N", "2", "--set", grace, "--", "sh", "-c", BEGINS)
    assert process.stdout
    assert process.stdout.readline() == "begun\n"
    begin = time.monotonic()
    process.send_signal(number)
    ended = done(process)
    seconds = time.monotonic() - begin
    print(f"{seconds:.1f} s from the signal to the end")
    assert (ended.code, ended.out) == (128 + number, "")
    assert ended.err.splitlines()[-1] == f"minicluster: removing {NAME}"
    # pods that wait for their jobs take longer than half of their grace period
    assert seconds < 120
    assert cluster.items() == []


def test_an_image_that_can_not_be_pulled_ends_the_run(cluster: FluxRelease, start: Start) -> None:
    ended = done(start("--image", "localhost/minicluster-none:1", "--", "true"))
    assert (ended.code, ended.out) == (1, "")
    message = rf"minicluster: {NAME} can't start: the lead is Pending: (ErrImagePull|ImagePullBackOff): .*: correct .*"
    first, *told, last = ended.err.splitlines()
    assert re.fullmatch(message, last)
    # one line for all of the tries
    assert len([line for line in told if "Pull" in line]) == 1, (first, told)
    assert cluster.items() == []


def test_the_timeout_ends_the_work_and_leaves_nothing(cluster: FluxRelease, start: Start) -> None:
    ended = done(start("--timeout", "40s", "--", "sh", "-c", "echo begun; exec sleep 600"))
    assert (ended.code, ended.out) == (1, "begun\n")
    message = f"minicluster: {NAME} in namespace {cluster.namespace}: gave up after 40 s"
    assert ended.err.splitlines()[-1] == message
    assert cluster.items() == []


def test_the_sdk_runs_a_command_and_leaves_nothing(cluster: FluxRelease, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in cluster.cluster.env.items():
        monkeypatch.setenv(name, value)
    values = testbed.values_of({}, FOUR_CORES)
    states: list[str] = []
    done = MiniCluster.run(
        "echo 'a  b'", cluster.namespace, values, nodes=2, tasks=2, timeout=240, progress=states.append
    )
    assert (done.exit_code, done.stdout) == (0, "a  b\na  b\n")
    assert states
    assert MiniCluster.run(["sh", "-c", "exit 7"], cluster.namespace, values).exit_code == 7
    # nobody waits for the end of pods of a name that was made up
    until(lambda: not cluster.items())
