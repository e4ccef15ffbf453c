"""`minicluster run --sizes` on a real Kubernetes."""

import csv
import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from minicluster.documents import yamlio
from real_cluster import IN_PODS
from support import Process

from tools import testbed
from tools.clients import Done, until
from tools.releases import STEP_SECONDS, FluxRelease
from tools.testbed import NAME

pytestmark = IN_PODS

Start = Callable[..., Process]
HEAD = ["size", "iteration", "tasks", "id", "submit", "start", "end", "seconds", "exit_code", "nodes"]
HEAD += ["memory_peak", "cpu_seconds", "threads", "gpus_busy", "gpu_memory_peak", "read", "written"]
#: Without matplotlib, which the tests need not have
NO_PLOT = "minicluster: no plot: matplotlib is not installed"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[FluxRelease]:
    """A namespace for runs, and how the tests see it."""
    with testbed.new_namespace() as namespace:
        yield testbed.release(namespace, {}, tmp_path)


@pytest.fixture
def start(cluster: FluxRelease, tmp_path: Path) -> Iterator[Start]:
    """Starts a matrix of the sizes 1 and 2, each twice, with the images of the tests."""
    started: list[Process] = []
    values = tmp_path / "run.json"
    values.write_text(json.dumps(testbed.values_of({}, {"cores": 4})))

    def start(*words: str) -> Process:
        matrix = ("--sizes", "1,2", "--iterations", "2", "--output", str(tmp_path / "results"))
        where = ("--namespace", cluster.namespace, "--name", NAME, "-f", str(values))
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        line = ("minicluster", "run", *where, *matrix, *words)
        started.append(Process(line, env=cluster.cluster.env, text=True, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def done(process: Process, seconds: float = 4 * STEP_SECONDS) -> Done:
    """Return how a process ends."""
    out, err = process.communicate(timeout=seconds)
    return Done(process.returncode, out, err)


def rows(folder: Path) -> list[dict[str, str]]:
    """Return the rows of the table."""
    with (folder / "results.csv").open() as file:
        reader = csv.DictReader(file)
        assert reader.fieldnames == HEAD
        return list(reader)


def record(folder: Path, size: int, iteration: int) -> dict[str, Any]:
    """Return the record of a run."""
    found: dict[str, Any] = json.loads((folder / f"size-{size}" / f"iteration-{iteration}" / "record.json").read_text())
    return found


def output(folder: Path, size: int, iteration: int) -> list[str]:
    """Return the lines of the output of a run."""
    return (folder / f"size-{size}" / f"iteration-{iteration}" / "output.txt").read_text().splitlines()


def test_a_matrix_leaves_the_results_of_each_run_and_no_minicluster(
    cluster: FluxRelease, start: Start, tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    work = ("--", "sh", "-c", 'echo "a  $(hostname)"; echo problem >&2; sleep 1; exit $FLUX_TASK_RANK')
    ended = done(start("--timeout", "5m", *work))
    print(ended.err)
    # in each run of two nodes the second task fails
    assert (ended.code, ended.out) == (1, "")
    assert cluster.items() == []
    found = rows(folder)
    assert [(row["size"], row["iteration"], row["tasks"], row["exit_code"]) for row in found] == [
        ("1", "1", "1", "0"),
        ("1", "2", "1", "0"),
        ("2", "1", "2", "1"),
        ("2", "2", "2", "1"),
    ]
    assert [row["nodes"] for row in found] == [f"{NAME}-1-0", f"{NAME}-1-0", f"{NAME}-2-[0-1]", f"{NAME}-2-[0-1]"]
    for before, row in zip([None, *found], found, strict=False):
        assert float(row["submit"]) <= float(row["start"]) < float(row["end"])
        assert float(row["seconds"]) == pytest.approx(float(row["end"]) - float(row["start"]), abs=1e-5)
        assert 1 <= float(row["seconds"]) < 60
        assert before is None or float(before["end"]) <= float(row["submit"])
    assert sorted(output(folder, 1, 2)) == [f"a  {NAME}-1-0", "problem"]
    # and what Flux says of the task that failed
    assert sorted(output(folder, 2, 1))[:2] == [f"a  {NAME}-2-0", f"a  {NAME}-2-1"]
    names = [event["name"] for event in record(folder, 1, 1)["events"]]
    assert (names[0], names[-1]) == ("submit", "clean")
    assert {"alloc", "start", "finish"} <= set(names)
    values = yamlio.load((folder / "size-2" / "values.yaml").read_text())
    assert (values["size"], values["containers"][0]["command"]) == (2, list(work[1:]))
    assert (folder / "wall-time.png").exists() or NO_PLOT in ended.err.splitlines()


def test_an_interrupted_matrix_goes_on_where_it_stopped(cluster: FluxRelease, start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    # a run of size 2 takes long enough to be interrupted
    work = ("--", "sh", "-c", 'echo begun; [ "$FLUX_JOB_SIZE" = 1 ] || exec sleep 20')
    process = start(*work)
    begun = folder / "size-2" / "iteration-1" / "output.txt.new"
    until(lambda: begun.exists() and "begun" in begun.read_text(), 4 * STEP_SECONDS)
    process.send_signal(signal.SIGINT)
    ended = done(process)
    assert ended.code == 128 + signal.SIGINT
    assert ended.err.splitlines()[-2:] == [
        f"minicluster: removing {NAME}-2",
        f"minicluster: {folder} has the runs that have ended: the same command goes on with the others",
    ]
    assert cluster.items() == []
    before = rows(folder)
    assert [(row["size"], row["iteration"]) for row in before] == [("1", "1"), ("1", "2")]

    refused = done(start("--", "true"))
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert f"{folder}/size-1/values.yaml has another containers[0].command" in refused.err

    again = done(start(*work))
    assert (again.code, again.err.splitlines()[0]) == (0, f"minicluster: size 1: 2 of 2 runs are in {folder}")
    assert f"minicluster: installed {NAME}-1 " not in again.err
    after = rows(folder)
    assert after[:2] == before
    assert [(row["size"], row["iteration"], row["exit_code"]) for row in after[2:]] == [
        ("2", "1", "0"),
        ("2", "2", "0"),
    ]
    assert output(folder, 2, 1) == ["begun", "begun"]
    assert cluster.items() == []
