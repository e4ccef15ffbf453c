"""A converted MPIJob on a real Kubernetes without mpi-operator: its ranks and its hosts are found."""

from pathlib import Path

import pytest
from minicluster.convert import convert
from minicluster.documents import yamlio
from pmi_programs import PI, PROGRAM, mpi_job
from real_cluster import IN_PODS

from tools import tenant, testbed

pytestmark = IN_PODS
#: The second worker, as mpi-operator names it
WORKER = f"{testbed.NAME}-worker-1.{testbed.NAME}"
#: A program that reads what mpirun of MPICH tells it
TELL = "bash -c 'echo $PMI_RANK: $MPI_LOCALRANKID of $MPI_LOCALNRANKS on $HOSTNAME'"
QUOTED = "'" + PROGRAM.replace("'", "'\\''") + "'"


@pytest.mark.any_helm
@pytest.mark.parametrize(
    ("launcher", "log"),
    [
        (["mpirun", "-n", "4", "bash", "-c", PROGRAM], f"4 ranks: pi is {PI}\n"),
        (["bash", "-c", f"mpirun -n 2 bash -c {QUOTED}; echo done"], f"2 ranks: pi is {PI}\ndone\n"),
        (
            ["bash", "-c", f"until getent hosts {WORKER} > /dev/null; do sleep 1; done; mpirun -n 4 {TELL} | sort"],
            "".join(f"{rank}: {rank % 2} of 2 on {testbed.NAME}-{rank // 2}\n" for rank in range(4)),
        ),
    ],
    ids=["mpirun", "shell", "names and variables"],
)
def test_an_mpijob_runs_over_two_pods(helm: object, tmp_path: Path, launcher: list[str], log: str) -> None:
    images = testbed.images()
    document = mpi_job(testbed.NAME, launcher, images["containers"][0], slotsPerWorker=2)
    (file,), _ = convert(yamlio.dump(document))
    flux = file.values.get("flux", {}) | images.get("flux", {})
    values = {"logging": {"quiet": True}, "flux": flux, "pod": {"labels": tenant.LABELS}}
    with testbed.new_namespace() as namespace:
        release = testbed.release(namespace, file.values | values, tmp_path, getattr(helm, "name", "helm"))
        release.install()
        assert "Complete" in release.wait_for_end()
        assert release.log(0) == log
        release.uninstall()
