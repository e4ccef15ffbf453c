"""The work of a converted MPIJob runs on real Flux, and its tasks find each other by PMI-1."""

from typing import Any

import pytest
from broker_clusters import Make
from minicluster.convert import convert
from minicluster.convert.mpijob import run_time
from minicluster.documents import yamlio
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


#: Values of a variable for tasks 0 to 3 on two nodes, by the end of its name
BY_TASK = {"LOCAL_RANK": "0101", "LOCALRANKID": "0101", "NODE_RANK": "0101", "RANK": "0123"}
BY_TASK |= {"LOCAL_SIZE": "2222", "LOCALNRANKS": "2222", "SIZE": "4444"}


def test_tasks_have_the_variables_of_the_mpirun_that_their_job_names(make: Make) -> None:
    cluster = make({"size": 2, "logging": {"quiet": True}}, {"cores": 2}).start().wait_for_ready()
    given = {item.here: item.names for item in run_time.ITEMS if item.here}
    names = sorted(name for names in given.values() for name in names)
    show = "; ".join(f"echo $FLUX_TASK_RANK {name} ${{{name}-none}}" for name in names)

    def told(*options: str) -> dict[str, str]:
        lines = cluster.lead.flux("run", "-N2", "-n4", *options, "sh", "-c", show).splitlines()
        found: dict[str, str] = {}
        for _, name, value in sorted(line.split() for line in lines):
            found[name] = found.get(name, "") + value
        return {name: value for name, value in found.items() if value != "none" * 4}

    for options in ([], ["-o", "mpi=openmpi"], ["-o", "mpi=openmpi@5"], ["-o", "mpi=mpich"], ["-o", "mpi=intel"]):
        option = " ".join(options).partition("@")[0].replace("intel", "mpich")
        expected = {name for here, found in given.items() for name in found if "PMI-1" in here or f"`{option}`" in here}
        ends = {name: next(values for end, values in BY_TASK.items() if name.endswith(end)) for name in expected}
        assert told(*options) == ends
