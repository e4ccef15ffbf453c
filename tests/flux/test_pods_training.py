"""PyTorch on a real Kubernetes, by the examples, in an image that has it; on CPUs."""

import re
from pathlib import Path
from typing import Any

import pytest
from pod_jobs import QUIET
from real_cluster import Install, example, need_image

from tools.clients import until
from tools.releases import FluxRelease
from tools.testbed import NAME, bind

IMAGE, MARKS = need_image("MINICLUSTER_TEST_TORCH_IMAGE", "PyTorch and mpi4py")
pytestmark = [*MARKS, pytest.mark.parametrize("scheduler", ["Fluxion"], indirect=True)]
#: What a start of PyTorch, and agents that miss one another for 15 s, take on a busy machine
SECONDS = 240.0


def printed(cluster: FluxRelease, job: str) -> str:
    """Return what a job has printed so far; the log of a pod may be gone with its Kubernetes node."""
    return cluster.cluster.run("minicluster", "output", NAME, job, "-n", cluster.namespace).out


def test_the_nodes_of_an_elastic_training_come_and_go(release: Install, volume: str, tmp_path: Path) -> None:
    values, runner = example("elastic-pytorch")
    (tmp_path / "steps").write_text("1000000")
    script = runner["commands"]["pre"].replace("step < 300", 'step < int(open("/data/steps").read())')
    runner["commands"]["pre"] = script.replace("time.sleep(1)", "time.sleep(0.2)")
    runner["command"] = runner["command"].replace("elastic-pytorch", NAME)
    cluster = release({**values, **QUIET}, {"image": IMAGE, "cores": 1, **runner})
    bind(cluster, "data", volume, tmp_path)
    cluster.wait_for("0-1", SECONDS)
    until(lambda: len(jobs(cluster)) == 4, SECONDS)
    (first,) = (job for job, state in jobs(cluster).items() if state.endswith(" 0"))

    def starts() -> list[Any]:
        return re.findall(r"(\d) nodes (begin|continue|end) at step (\d+)", printed(cluster, first))

    until(lambda: starts()[-1:] and starts()[-1][0] == "2", SECONDS, "two nodes")
    cluster.upgrade("--set", "size=3")
    until(lambda: starts()[-1][0] == "3", SECONDS, "three nodes")
    cluster.upgrade("--set", "size=2")
    until(lambda: starts()[-1][0] == "2", SECONDS, "two nodes again")
    # the agent of the node that left waits for another one, beside the one that never had a node
    assert sorted(state for state in jobs(cluster).values() if not state.startswith("F ")) == [
        *("R 0", "R 1", "S ", "S ")
    ]
    last = int(starts()[-1][2])
    # in steps that no rank has reached yet
    (tmp_path / "steps").write_text(f"{last + 500}")
    assert "Complete" in cluster.wait_for_end()


def jobs(cluster: FluxRelease) -> dict[str, str]:
    """Return state and ranks of all jobs, by their ids."""
    text = cluster.flux(0, "jobs", "-a", "-n", "-o", "{id};{status_abbrev} {ranks}")
    return dict(line.split(";") for line in text.splitlines())


def test_the_all_reduce_of_all_ranks_is_right_and_measured_at_each_size(release: Install) -> None:
    values, runner = example("allreduce")
    cluster = release(values, {**runner, "image": IMAGE})
    assert "Complete" in cluster.wait_for_end()
    title, _heads, *rows = cluster.log(0).splitlines()
    assert title == "# 4 ranks on 2 nodes"
    table = [[float(cell) for cell in row.split()] for row in rows]
    assert [row[0] for row in table] == [8 * 4**power for power in range(12)]
    for size, micros, rate, bus, wrong in table:
        assert wrong == 0
        assert rate == pytest.approx(size / micros / 1e3, rel=0.01, abs=0.001)
        assert bus == pytest.approx(1.5 * size / micros / 1e3, rel=0.01, abs=0.001)
    print("\n".join(rows))
