"""minicluster.lua sets CPUs, PYTHONPATH and PMIx of a job, for each way to start it."""

import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from broker_clusters import Cluster, Make
from broker_pods import Flux
from shells import PROGRAMS, SHOW_CPUS, SHOW_PYTHONPATH, WAYS, first_core, lines, said

from tools.releases import MOUNT

QUIET: dict[str, Any] = {"logging": {"quiet": True}}
ALL = re.search(r"^Cpus_allowed_list:\s*(\S+)$", Path("/proc/self/status").read_text(), re.MULTILINE)[1]  # type: ignore[index]
ONE = first_core(ALL)
COUNT = len(os.sched_getaffinity(0))
#: Where a view has the plugins of Flux's shell
PLUGINS = "lib/flux/shell/plugins"
NO_PMIX = "minicluster: -o pmi=pmix does not work, "


def shown(cluster: Cluster, show: str, ways: dict[str, str], options: str = "") -> dict[str, str]:
    """Return the output of each way to start a job, used in the pod."""
    script = f". {MOUNT}/flux-view.sh\n{lines(show, ways, options)}"
    done = cluster.lead.run("/bin/sh", "-c", script)
    assert done.returncode == 0, done.stderr
    return said(done.stdout, ways)


@pytest.mark.parametrize(
    ("affinity", "expected", "option", "wins"),
    [("auto", ALL, "on", ONE), ("off", ALL, "on", ONE), ("on", ONE, "off", ALL)],
)
def test_each_kind_of_job_has_the_cpus_of_its_affinity(
    make: Make, affinity: str, expected: str, option: str, wins: str
) -> None:
    cluster = make({**QUIET, "flux": {"affinity": affinity}}, {"cores": 1}).start().wait_for_ready()
    assert shown(cluster, SHOW_CPUS, WAYS) == dict.fromkeys(WAYS, expected)
    # a batch, an allocation and a nested instance have the affinity of the job that they run in
    within = dict.fromkeys(WAYS, ONE if affinity == "on" else wins)
    expected_of = {**within, "run": wins, "submit": wins}
    assert shown(cluster, SHOW_CPUS, WAYS, f"-ocpu-affinity={option}") == expected_of


@pytest.mark.parametrize("field", ["requests", "limits"])
def test_jobs_are_bound_in_a_pod_that_requests_all_cpus(make: Make, field: str) -> None:
    runner = {"cores": 1, "resources": {field: {"cpu": COUNT}}}
    cluster = make(QUIET, runner).start().wait_for_ready()
    assert shown(cluster, SHOW_CPUS, WAYS) == dict.fromkeys(WAYS, ONE)


@pytest.mark.parametrize(("own", "expected"), [({"PYTHONPATH": "/a:/b"}, "/a:/b"), ({}, "unset")], ids=["own", "none"])
def test_jobs_have_the_pythonpath_of_the_image(make: Make, own: dict[str, str], expected: str) -> None:
    cluster = make(QUIET, {"cores": 1}, environment=own).start().wait_for_ready()
    ways = {**WAYS, **PROGRAMS}
    assert shown(cluster, SHOW_PYTHONPATH, ways) == dict.fromkeys(ways, expected)


@pytest.mark.parametrize(("own", "expected"), [({"PYTHONPATH": "/a:/b"}, "/a:/b"), ({}, "unset")], ids=["own", "none"])
def test_the_work_of_the_lead_has_the_pythonpath_of_the_image(make: Make, own: dict[str, str], expected: str) -> None:
    ways = {**WAYS, **PROGRAMS}
    batch = f"#!/bin/sh\n{SHOW_PYTHONPATH}\n{lines(SHOW_PYTHONPATH, ways)}"
    for runner in ({"command": batch}, {"command": batch, "batch": True, "batchRaw": True}):
        cluster = make(QUIET, {**runner, "cores": 4}, environment=own)
        assert cluster.run() == [0], cluster.lead.log
        # an older instance misses the pod's host name, which pods don't have here
        log = "".join(line for line in cluster.lead.log.splitlines(keepends=True) if ": verify: " not in line)
        first, _, rest = log.partition("\n")
        assert first == expected
        assert said(rest, ways) == dict.fromkeys(ways, expected)


@pytest.mark.parametrize(("own", "expected"), [({"PYTHONPATH": "/a:/b"}, "/a:/b"), ({}, "unset")], ids=["own", "none"])
def test_a_launcher_has_the_bindings_of_flux_beside_the_pythonpath_of_the_image(
    make: Make, flux: Flux, own: dict[str, str], expected: str
) -> None:
    ways = {**WAYS, **PROGRAMS}
    command = f"{SHOW_PYTHONPATH}\n{lines(SHOW_PYTHONPATH, ways)}"
    cluster = make(QUIET, {"command": command, "launcher": True, "cores": 4}, environment=own)
    assert cluster.run() == [0], cluster.lead.log
    first, _, rest = cluster.lead.log.partition("\n")
    bindings = [str(folder) for folder in flux.view.glob("lib/flux/python3*")] if flux.view else []
    assert first == (":".join([*own.values(), *bindings]) or "unset")
    assert said(rest, ways) == dict.fromkeys(ways, expected)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-g1"], ["0,1 PCI_BUS_ID", "0,1 PCI_BUS_ID"]),
        (["-g1", "-ogpu-affinity=per-task"], ["0 PCI_BUS_ID", "1 PCI_BUS_ID"]),
        ([], ["-1 PCI_BUS_ID", "-1 PCI_BUS_ID"]),
    ],
    ids=["all", "per task", "none"],
)
def test_a_job_sees_its_gpus_in_cuda_visible_devices(
    make: Make, flux: Flux, options: list[str], expected: list[str]
) -> None:
    cluster = make(QUIET, {"cores": 2, "resources": {"limits": {"nvidia.com/gpu": 2}}}).start().wait_for_ready()
    if options:
        flux.knows_gpus()
    show = 'echo "${CUDA_VISIBLE_DEVICES-unset}" "${CUDA_DEVICE_ORDER-unset}"'
    assert sorted(cluster.lead.flux("run", "-n2", *options, "sh", "-c", show).splitlines()) == expected


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that pods share; each has a /tmp of its own."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        yield Path(name)


@pytest.mark.parametrize("layout", ["pmix.so", "pmix/pmix.so"], ids=["current", "older"])
def test_pmix_is_loaded_for_a_job_that_asks(make: Make, flux: Flux, folder: Path, layout: str) -> None:
    if not flux.view or not (flux.view / PLUGINS / "pmix.so").exists():
        pytest.skip("no flux-pmix in this Flux")
    plugin = (flux.view / PLUGINS / "pmix.so").resolve()
    if b"interthread://" in plugin.read_bytes():
        flux.since(56, "it lacks a connector that this flux-pmix needs")
    view = folder / "view"
    link_all_but(flux.view, view, ("lib", "flux", "shell"))
    (view / PLUGINS / layout).parent.mkdir(parents=True)
    (view / PLUGINS / layout).symlink_to(plugin)
    cluster = make(QUIET, {"cores": 2}, view=view).start().wait_for_ready()
    show = "env | sed -n 's/^PMIX_\\(RANK\\)=/\\1 /p'"
    assert sorted(cluster.lead.flux("run", "-n2", "-opmi=pmix", "sh", "-c", show).splitlines()) == ["RANK 0", "RANK 1"]
    assert cluster.lead.flux("run", "-n2", "sh", "-c", show) == ""


def test_pmix_that_is_not_in_the_view_is_refused(make: Make, flux: Flux, folder: Path) -> None:
    if not flux.view:
        pytest.skip("no view here")
    # the same tree without the plugins of the shell, or with one that can't be loaded
    view = folder / "view"
    plugins = view / PLUGINS
    link_all_but(flux.view, view, ("lib", "flux", "shell"))
    plugins.mkdir(parents=True)
    cluster = make(QUIET, {"cores": 1}, view=view).start().wait_for_ready()
    assert messages(cluster) == {f"{NO_PMIX}this Flux has no flux-pmix: use a view that has it"}
    (plugins / "pmix.so").write_text("none")
    file = f"{MOUNT}/view/{PLUGINS}/pmix.so"
    assert messages(cluster) == {f"{NO_PMIX}put libpmix into the image: {file}: file too short"}
    assert cluster.lead.flux("run", "echo", "hello") == "hello\n"


def messages(cluster: Cluster) -> set[str]:
    """Return the message of a job that can't have PMIx, without the shell's prefix and the loader's message."""
    done = cluster.lead.run("sh", "-c", shlex.join([f"{MOUNT}/bin/flux", "run", "-opmi=pmix", "echo", "hello"]))
    assert done.returncode != 0
    assert done.stdout == ""
    return {line[line.index("minicluster: ") :] for line in done.stderr.splitlines() if "minicluster: " in line}


def test_a_job_without_pmix_is_warned_where_its_program_may_have_open_mpi_5(make: Make, folder: Path) -> None:
    cluster = make(QUIET, {"cores": 2}).start().wait_for_ready()
    (folder / "bin").mkdir()
    program = folder / "bin" / "hello"
    program.symlink_to("/bin/true")

    def warned(*words: str) -> list[str]:
        done = cluster.lead.run(f"{MOUNT}/bin/flux", *words)
        assert done.returncode == 0, done.stderr
        return [line[line.index("warning: ") :] for line in done.stderr.splitlines() if "minicluster: " in line]

    assert warned("run", "-n2", str(program)) == []
    (folder / "lib").mkdir()
    library = folder / "lib" / "libopen-pal.so.80"
    library.touch()
    expected = [
        f"warning: the image has Open MPI 5 ({folder}/bin/../lib/libopen-pal.so.80), whose tasks are each rank 0 of 1 "
        "without -o pmi=pmix; for another program give -o pmi=simple"
    ]
    assert warned("run", "-n2", str(program)) == expected
    assert warned("run", "-n2", f"--env=PATH={folder}/bin:/bin", "true") == expected
    for words in (["-n1"], ["-n2", "-o", "pmi=simple"], ["-n2", "-o", "pmi=off"]):
        assert warned("run", *words, str(program)) == []
    # the tasks of an instance are its brokers
    assert warned("alloc", "-n2", f"--env=LD_LIBRARY_PATH={folder}/lib", "true") == []
    library.rename(folder / "lib" / "libopen-pal.so.40")
    assert warned("run", "-n2", str(program)) == []


def link_all_but(tree: Path, target: Path, way: tuple[str, ...]) -> None:
    """Copy a tree as links, without one of its folders."""
    target.mkdir()
    for entry in tree.iterdir():
        if entry.name != way[0]:
            (target / entry.name).symlink_to(entry.resolve())
        elif way[1:]:
            link_all_but(entry, target / entry.name, way[1:])
