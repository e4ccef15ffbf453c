"""MPI on a real Kubernetes: four pods of one node, in an image that has MPI."""

import os
import re
from typing import Any

import pytest
from real_cluster import Install, Need, need_image
from shells import PROGRAMS, SHOW_CPUS, SHOW_PYTHONPATH, WAYS, first_core, lines, said

from tools.releases import MOUNT, FluxRelease

IMAGE, pytestmark = need_image("MINICLUSTER_TEST_MPI_IMAGE", "MPI")

FOUR: dict[str, Any] = {"size": 4, "logging": {"quiet": True}}
TWO = {**FOUR, "size": 2}
PYTHON = "/opt/ompi5/bin/python"
#: The shell commands that succeed where a tool is in the image.
LOOKS = {
    "hello-openmpi": "command -v hello-openmpi",
    "hello-mpich": "command -v hello-mpich",
    "ompi5": f"command -v {PYTHON}",
    "flux's modules": "python3 -c 'import cffi, ply, yaml'",
}
#: Prints the size of MPI's world and its ranks.
WORLD = "from mpi4py.MPI import COMM_WORLD as w; print(w.size, w.gather(w.rank)) if w.rank == 0 else w.gather(w.rank)"
NO_PMIX = "minicluster: -o pmi=pmix does not work, "


def up(release: Install, values: dict[str, Any], **runner: Any) -> FluxRelease:
    """Return a cluster in the image with MPI, one core a node, once all nodes are up."""
    cluster = release(values, {"image": IMAGE, "cores": 1, **runner})
    cluster.wait_for(f"0-{values['size'] - 1}")
    return cluster


def cpus(cluster: FluxRelease) -> tuple[str, str]:
    """Return the CPUs that a pod may run on, and those of the first core."""
    all_ = cluster.exec(0, "sh", "-c", SHOW_CPUS).strip()
    return all_, first_core(all_, lambda path: cluster.exec(0, "cat", path))


def hello(bound: str) -> str:
    """Return the output of four ranks, one in each pod."""
    return "".join(f"rank {rank} of 4 host mini-{rank} cpus {bound}\n" for rank in range(4))


@pytest.mark.parametrize("affinity", ["auto", "on", "off"])
def test_mpi_ranks_in_pods_of_one_node_share_its_cpus_unless_bound(release: Install, need: Need, affinity: str) -> None:
    need("hello-openmpi")
    cluster = up(release, {**FOUR, "flux": {"affinity": affinity}})
    all_, one = cpus(cluster)
    words = ("run", "-N4", "-n4")
    assert cluster.flux(0, *words, "hello-openmpi") == hello(one if affinity == "on" else all_)
    # the user's own option wins
    assert cluster.flux(0, *words, "-ocpu-affinity=on", "hello-openmpi") == hello(one)
    assert cluster.flux(0, *words, "-ocpu-affinity=off", "hello-openmpi") == hello(all_)


def shown(cluster: FluxRelease, show: str, ways: dict[str, str], options: str = "") -> dict[str, str]:
    """Return the output of each way to start a job, used in the lead's pod."""
    script = f". {MOUNT}/flux-view.sh\n{lines(show, ways, options)}"
    return said(cluster.exec(0, "sh", "-c", script), ways)


def test_each_kind_of_job_has_the_cpus_of_its_affinity(release: Install) -> None:
    cluster = up(release, TWO)
    all_, one = cpus(cluster)
    assert shown(cluster, SHOW_CPUS, WAYS) == dict.fromkeys(WAYS, all_)
    assert shown(cluster, SHOW_CPUS, WAYS, "-ocpu-affinity=on") == dict.fromkeys(WAYS, one)


def test_open_mpi_runs_in_an_allocation_of_four_pods(release: Install, need: Need) -> None:
    need("hello-openmpi")
    cluster = up(release, FOUR)
    all_, _one = cpus(cluster)
    assert cluster.flux(0, "alloc", "-N4", "flux", "run", "-N4", "-n4", "hello-openmpi") == hello(all_)


def test_mpich_starts_by_pmi_1(release: Install, need: Need) -> None:
    need("hello-mpich")
    cluster = up(release, FOUR)
    all_, _one = cpus(cluster)
    # some builds of MPICH (4.0 with UCX over TCP) hang at their end
    bounded = "timeout 20 hello-mpich || true"
    assert cluster.flux(0, "run", "-N4", "-n4", "sh", "-c", bounded) == hello(all_)


def test_open_mpi_5_starts_by_pmix(release: Install, need: Need) -> None:
    need("ompi5")
    cluster = up(release, FOUR)
    assert cluster.flux(0, "run", "-N4", "-n4", "-opmi=pmix", PYTHON, "-c", WORLD) == "4 [0, 1, 2, 3]\n"
    # without PMIx each task is a world of its own
    assert cluster.flux(0, "run", "-N4", "-n4", PYTHON, "-c", WORLD) == "1 [0]\n" * 4


def refusal(cluster: FluxRelease) -> set[str]:
    """Return the message of a job that can't have PMIx, without Flux's prefix."""
    done = cluster.run_in(cluster.pod(0), f"{MOUNT}/bin/flux", "run", "-opmi=pmix", "echo", "hello")
    assert (done.code != 0, done.out) == (True, "")
    return {line[line.index("minicluster: ") :] for line in done.err.splitlines() if "minicluster: " in line}


def test_pmix_is_refused_with_a_message_in_an_image_without_libpmix(release: Install) -> None:
    # the image of the other tests has no libpmix
    cluster = release(TWO, {"cores": 1})
    cluster.wait_for("0-1")
    if cluster.exec(0, "sh", "-c", "cat /etc/ld.so.cache | grep -c libpmix") not in ("", "0\n"):
        pytest.skip("libpmix is in the image of the tests")
    (said_,) = refusal(cluster)
    reason = r"libpmix\.so\.\d+: cannot open shared object file: No such file or directory"
    assert re.fullmatch(re.escape(f"{NO_PMIX}put libpmix into the image: ") + reason, said_)
    assert cluster.flux(0, "run", "-N2", "-n2", "echo", "hello") == "hello\n" * 2


VIEW_WITHOUT_PMIX = os.environ.get("MINICLUSTER_TEST_SIMPLE_VIEW_IMAGE", "")


@pytest.mark.skipif(not VIEW_WITHOUT_PMIX, reason="MINICLUSTER_TEST_SIMPLE_VIEW_IMAGE names no view without flux-pmix")
def test_pmix_is_refused_with_a_message_in_a_view_without_flux_pmix(release: Install) -> None:
    cluster = up(release, {**TWO, "flux": {"container": {"image": VIEW_WITHOUT_PMIX}}})
    assert refusal(cluster) == {f"{NO_PMIX}this Flux has no flux-pmix: use a view that has it"}
    assert cluster.flux(0, "run", "-N2", "-n2", "echo", "hello") == "hello\n" * 2


PYTHONPATHS = pytest.mark.parametrize(("own", "expected"), [({"PYTHONPATH": "/a:/b"}, "/a:/b"), ({}, "unset")])


@PYTHONPATHS
def test_jobs_have_the_pythonpath_of_the_image(release: Install, own: dict[str, str], expected: str) -> None:
    cluster = up(release, TWO, environment=own)
    ways = {**WAYS, **PROGRAMS}
    assert shown(cluster, SHOW_PYTHONPATH, ways) == dict.fromkeys(ways, expected)


@PYTHONPATHS
def test_a_launcher_imports_flux_and_its_jobs_have_the_pythonpath_of_the_image(
    release: Install, need: Need, own: dict[str, str], expected: str
) -> None:
    need("flux's modules")
    ways = {**WAYS, **PROGRAMS}
    imports = "python3 -c 'import flux; print(flux.Flux().attr_get(\"size\"))'"
    command = f"{SHOW_PYTHONPATH}\n{imports}\n{lines(SHOW_PYTHONPATH, ways)}"
    cluster = release(TWO, {"image": IMAGE, "cores": 1, "command": command, "launcher": True, "environment": own})
    conditions = cluster.wait_for_end()
    path, size, *rest = cluster.log(0).splitlines()
    assert "Complete" in conditions, cluster.log(0)
    assert re.fullmatch(":".join([*own.values(), r"/opt/views/view/lib/flux/python3\.\d+"]), path)
    assert size == "2"
    assert said("\n".join(rest), ways) == dict.fromkeys(ways, expected)
