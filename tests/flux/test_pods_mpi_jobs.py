"""A converted MPIJob on a real Kubernetes without mpi-operator: its ranks find each other by PMI-1."""

from pathlib import Path

import pytest
from minicluster import yamlio
from minicluster.convert import convert
from pmi_programs import PI, PROGRAM, mpi_job
from real_cluster import IN_PODS

from tools import tenant, testbed

pytestmark = IN_PODS
QUOTED = "'" + PROGRAM.replace("'", "'\\''") + "'"


@pytest.mark.any_helm
@pytest.mark.parametrize(
    ("launcher", "log"),
    [
        (["mpirun", "-n", "4", "bash", "-c", PROGRAM], f"4 ranks: pi is {PI}\n"),
        (["bash", "-c", f"mpirun -n 2 bash -c {QUOTED}; echo done"], f"2 ranks: pi is {PI}\ndone\n"),
    ],
    ids=["mpirun", "shell"],
)
def test_an_mpijob_computes_pi_over_two_pods(helm: object, tmp_path: Path, launcher: list[str], log: str) -> None:
    images = testbed.images()
    document = mpi_job(testbed.NAME, launcher, images["containers"][0], slotsPerWorker=2)
    (file,), _ = convert(yamlio.dump(document))
    values = {"logging": {"quiet": True}, "flux": images.get("flux", {}), "pod": {"labels": tenant.LABELS}}
    with testbed.new_namespace() as namespace:
        release = testbed.release(namespace, file.values | values, tmp_path, getattr(helm, "name", "helm"))
        release.install()
        assert "Complete" in release.wait_for_end()
        assert release.log(0) == log
        release.uninstall()
