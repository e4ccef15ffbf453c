"""The work of a converted MPIJob runs on real Flux, and its tasks find each other by PMI-1."""

from typing import Any

import pytest
from broker_clusters import Make
from minicluster import yamlio
from minicluster.convert import convert
from pmi_programs import PI, PROGRAM, mpi_job


def values(launcher: list[str], **spec: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values of an MPIJob and those of its runner."""
    (file,), _ = convert(yamlio.dump(mpi_job("a", launcher, {"image": "none"}, **spec)))
    (runner,) = file.values.pop("containers")
    return file.values | {"logging": {"quiet": True}}, runner


def test_a_lone_mpirun_starts_as_many_ranks(make: Make) -> None:
    cluster = make(*values(["mpirun", "-n", "4", "bash", "-c", PROGRAM], slotsPerWorker=2))
    assert cluster.run() == [0, 0]
    assert cluster.lead.log == f"4 ranks: pi is {PI}\n"


def test_a_shell_text_runs_once_and_its_mpirun_starts_the_ranks(make: Make) -> None:
    text = 'set -e; ranks=2; A=1 mpirun -n "$ranks" -env B "$ranks" bash -c "$0$PROGRAM"; echo done'
    launcher = ["bash", "-c", text.replace('"$0$PROGRAM"', "'" + PROGRAM.replace("'", "'\\''") + "'")]
    cluster = make(*values(launcher))
    assert cluster.run() == [0, 0]
    assert cluster.lead.log == f"2 ranks: pi is {PI}\ndone\n"


@pytest.mark.parametrize("launcher", [["mpirun", "false"], ["sh", "-c", "mpirun false && echo not here"]])
def test_a_program_that_fails_fails_the_cluster(make: Make, launcher: list[str]) -> None:
    cluster = make(*values(launcher))
    assert cluster.run()[0] == 1
    assert "not here" not in cluster.lead.log


def test_ranks_that_are_mapped_by_node_alternate(make: Make) -> None:
    program = ["bash", "-c", "echo $PMI_RANK on $FLUX_JOB_NNODES nodes, local $FLUX_TASK_LOCAL_ID"]
    cluster = make(*values(["mpirun", "-n", "4", "-rr", *program], slotsPerWorker=2))
    assert cluster.run() == [0, 0]
    assert sorted(cluster.lead.log.splitlines()) == [
        f"{rank} on 2 nodes, local {local}" for rank, local in enumerate([0, 0, 1, 1])
    ]
