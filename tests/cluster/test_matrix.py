"""`minicluster run --sizes` on a real API server. In its pods nothing runs: kubectl answers for the lead."""

import csv
import dataclasses
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from minicluster.documents import yamlio
from support import BIN, Done, Helm, Process

from tools import tenant
from tools.releases import Release

Start = Callable[..., Process]
pytestmark = [
    pytest.mark.without("security", why="the values of each size are compared as they were given"),
]
#: Notes what is submitted. A job of two nodes runs until there is a file `go`
KUBECTL = f"""#!/bin/sh
folder=${{0%/*}}
count=$(cat "$folder/submitted" 2>/dev/null | wc -l)
case " $* " in
*" exec "*" submit "*) echo "${{*##*/bin/flux }}" >>"$folder/submitted"; echo "f$((count + 1))" ;;
*" exec mc-2-0-"*" attach "*) echo begun; until [ -e "$folder/go" ]; do sleep 0.1; done ;;
*" exec "*" attach "*) echo out ;;
*" exec "*" eventlog "*) echo '{{"name": "submit", "timestamp": 1}}' ;;
*" exec "*" python "*)
  echo '{{"id": "f'$count'", "state": "INACTIVE", "result": "COMPLETED", "exit_code": 0, "nodes": "n", "ntasks": 2,' \
    '"t_submit": 1.0, "t_run": 2.0, "t_cleanup": 3.5, "t_inactive": 4.0}}'
  echo '{{"purged": 0, "earlier": 0}}' ;;
*" exec "*" cancel "*) echo >>"$folder/cancelled" ;;
*) exec {BIN}/kubectl "$@" ;;
esac
"""
WORK = ("--", "work", "a  $B")


@pytest.fixture
def start(connected: Helm, release: Release, tmp_path: Path) -> Iterator[Start]:
    """Starts a matrix of the sizes 1 and 2, each twice, in the release's namespace, with each Helm."""
    (tmp_path / "kubectl").write_text(KUBECTL)
    (tmp_path / "kubectl").chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{connected.environment['PATH']}"
    environment = connected.environment | {"HELM_BIN": connected.name, "PATH": path}
    (tmp_path / "values.json").write_text(json.dumps(tenant.values({}, release.world)))
    where = ("--namespace", release.namespace, "--name", "mc", "-f", str(tmp_path / "values.json"))
    started: list[Process] = []

    def start(*words: str) -> Process:
        matrix = ("--sizes", "1,2", "--iterations", "2", "--output", str(tmp_path / "results"))
        line = ("minicluster", "run", *where, *matrix, *words)
        started.append(Process(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def done(process: Process) -> Done:
    """Return how a process ends."""
    out, err = process.communicate(timeout=120)
    return Done(process.returncode, out, err)


def runs(folder: Path) -> list[list[str]]:
    """Return size and iteration of the rows of the table."""
    with (folder / "results" / "results.csv").open() as file:
        return [row[:2] for row in csv.reader(file)][1:]


def wait_for_second_size(release: Release, folder: Path) -> Release:
    """Wait until a job of size 2 runs; return the release of its MiniCluster."""
    output = folder / "results" / "size-2" / "iteration-1" / "output.txt.new"
    release.cluster.wait("a job of two nodes", lambda: output.exists() and output.read_text() == "begun\n", 90)
    return dataclasses.replace(release, name="mc-2")


@pytest.mark.any_helm
def test_each_size_has_an_idle_minicluster_that_is_removed(release: Release, start: Start, tmp_path: Path) -> None:
    process = start("--image", "a", "--timeout", "5m", *WORK)
    second = wait_for_second_size(release, tmp_path)
    assert [job["metadata"]["name"] for job in release.items("jobs")] == ["mc-2"]
    spec = second.get("job")["spec"]
    assert (spec["completions"], spec["activeDeadlineSeconds"]) == (2, 310)
    assert spec["template"]["spec"]["containers"][0]["image"] == "a"
    files = second.get("configmap", "mc-2-config")["data"]
    assert "mc_work=idle" in files["settings.sh"]
    (tmp_path / "go").touch()
    ended = done(process)
    assert (ended.code, ended.out) == (0, "")
    assert [line for line in ended.err.splitlines() if "iteration" in line] == [
        f"minicluster: size {size}, iteration {n}: exit code 0 after 1.500 s" for size in (1, 2) for n in (1, 2)
    ]
    submitted = (tmp_path / "submitted").read_text().splitlines()
    assert submitted == ["submit -N 1 work a  $B"] * 2 + ["submit -N 2 work a  $B"] * 2
    assert not (tmp_path / "cancelled").exists()
    assert runs(tmp_path) == [["1", "1"], ["1", "2"], ["2", "1"], ["2", "2"]]
    values = yamlio.load((tmp_path / "results" / "size-2" / "values.yaml").read_text())
    assert values["containers"] == [{"image": "a", "command": ["work", "a  $B"]}]
    assert release.items() == []


@pytest.mark.any_helm
def test_an_interrupted_matrix_leaves_nothing_and_goes_on(release: Release, start: Start, tmp_path: Path) -> None:
    process = start(*WORK)
    wait_for_second_size(release, tmp_path)
    process.send_signal(signal.SIGINT)
    ended = done(process)
    assert (ended.code, ended.err.splitlines()[-2]) == (128 + signal.SIGINT, "minicluster: removing mc-2")
    assert (tmp_path / "cancelled").exists()
    assert release.items() == []
    assert runs(tmp_path) == [["1", "1"], ["1", "2"]]
    (tmp_path / "go").touch()
    again = done(start(*WORK))
    assert again.code == 0
    assert again.err.splitlines()[0] == f"minicluster: size 1: 2 of 2 runs are in {tmp_path / 'results'}"
    assert runs(tmp_path) == [["1", "1"], ["1", "2"], ["2", "1"], ["2", "2"]]
    other = done(start("--", "other"))
    assert (other.code, other.err.count("\n")) == (2, 1)
    assert "/size-1/values.yaml has another containers[0].command: " in other.err


@pytest.mark.any_helm
def test_values_that_a_size_can_not_have_are_refused_before_the_first_run(
    release: Release, start: Start, tmp_path: Path
) -> None:
    for words, message in (
        (("--set", "maxSize=1"), "size is 2, maxSize 1: lower size"),
        (("--set", "size=2"), "the values set size to 2, and a matrix has its own sizes: drop it from --set"),
        (("--set", "interactive=true"), "interactive is true and there is a command"),
        (("-n", "1"), "1 tasks are fewer than the 2 nodes: ask for at least 2, or 0 for one on each node"),
    ):
        ended = done(start(*words, *WORK))
        assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1), ended
        assert message in ended.err
    assert release.items() == []
    assert not (tmp_path / "results").exists()
