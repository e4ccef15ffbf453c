"""Fixtures: the Flux of this machine and clusters of it; releases on a real cluster."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from broker_clusters import Cluster, Make
from broker_pods import UNSHARE, Flux, Image
from person import Person
from real_cluster import Install, Need

from tools import tenant, testbed
from tools.releases import FluxRelease

#: $FLUX_PREFIX is a list, with spaces
PREFIXES = os.environ.get("FLUX_PREFIX", "").split()


def version_of(prefix: str) -> str:
    """Return the version of the Flux in a prefix, for the names of its tests."""
    done = subprocess.run([f"{prefix}/bin/flux", "--version"], capture_output=True, text=True, check=True)
    return done.stdout.split()[1]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove the policies of the tests' world from the real cluster, after the last worker."""
    if testbed.KUBECONFIG in os.environ and not hasattr(session.config, "workerinput"):
        tenant.leave(testbed.kubernetes())


@pytest.fixture(scope="session", params=PREFIXES if PREFIXES[1:] else None, ids=version_of)
def flux_path(request: pytest.FixtureRequest) -> Path:
    """Each Flux of this machine. Skips where there is none."""
    prefix = getattr(request, "param", "".join(PREFIXES))
    found = shutil.which("flux", path=f"{prefix}/bin" if prefix else None)
    if not found:
        pytest.skip("flux is neither in PATH nor in $FLUX_PREFIX/bin")
    return Path(found)


@pytest.fixture(scope="session", params=testbed.SCHEDULERS)
def flux(request: pytest.FixtureRequest, flux_path: Path) -> Flux:
    """Each Flux of this machine with each scheduler. Skips where the scheduler or Linux namespaces are missing."""
    path = flux_path
    if not shutil.which("unshare") or subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespaces of one's own here (unshare --mount --pid)")
    tree = path.parents[1]
    # a view is a tree of links to the prefixes of flux-core, flux-sched and more
    flux = Flux(path, tree if path.is_symlink() else None, request.param)
    if request.param == "Fluxion" and not flux.has_fluxion:
        pytest.skip(f"no Fluxion (flux-sched) in {tree}")
    return flux


@pytest.fixture
def make(flux: Flux, tmp_path: Path) -> Iterator[Make]:
    """Makes clusters that are killed at the end of the test."""
    clusters: list[Cluster] = []

    def make(values: dict[str, Any], runner: dict[str, Any] | None = None, **image: Any) -> Cluster:
        folder = tmp_path / str(len(clusters))
        clusters.append(Cluster(folder, flux.values(values), runner or {}, Image(**{**flux.image, **image})))
        return clusters[-1]

    yield make
    for cluster in clusters:
        cluster.end()


@pytest.fixture(scope="session")
def schedulers(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The schedulers that the view image of the pods has."""
    with testbed.new_namespace() as namespace:
        lead = testbed.release(namespace, testbed.values_of({}, {}), tmp_path_factory.mktemp("schedulers"))
        lead.install()
        lead.wait_for("0")
        return ["sched-simple", *(["Fluxion"] if "scheduler: Fluxion" in lead.log(0) else [])]


@pytest.fixture(params=testbed.SCHEDULERS)
def scheduler(request: pytest.FixtureRequest, schedulers: list[str]) -> str:
    """Each scheduler."""
    if request.param not in schedulers:
        pytest.skip("no Fluxion (flux-sched) in MINICLUSTER_TEST_VIEW_IMAGE")
    return str(request.param)


@pytest.fixture
def release(request: pytest.FixtureRequest, tmp_path: Path, scheduler: str) -> Iterator[Install]:
    """Installs clusters that are removed with the test."""
    world = tenant.world_of(request.node.iter_markers("without"), testbed.WORLD)
    with ExitStack() as stack:

        def release(values: dict[str, Any], runner: dict[str, Any] | None = None, **how: Any) -> FluxRelease:
            mode = how.get("mode", "auto")
            if mode == "image" and testbed.minor_version() < 35:
                pytest.skip("the cluster's Kubernetes has no image volumes, which came with 1.35")
            namespace = stack.enter_context(testbed.new_namespace(*how.get("labels", ()), world=world))
            all_values = testbed.values_of(values, runner or {}, mode, scheduler, world)
            installed = testbed.release(namespace, all_values, tmp_path, how.get("helm", "helm"))
            installed.world = world
            if version := how.get("version"):
                installed.helm, installed.chart = version.helm(installed.helm), version.chart
            installed.install(*how.get("options", ()))
            return installed

        yield release


@pytest.fixture
def volume() -> Iterator[str]:
    """The name of a volume that is removed with the test; `bind` makes it."""
    with testbed.new_volume() as name:
        yield name


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    """A person in a namespace with a storage class that has a volume for each claim of demo."""
    with testbed.new_namespace() as namespace, testbed.new_volume() as first, testbed.new_volume() as second:
        release = testbed.release(namespace, {}, tmp_path, name="demo")
        made = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": namespace}}
        release.cluster.create({**made, "provisioner": "kubernetes.io/no-provisioner"})
        for claim, volume in (("state", first), ("data", second)):
            testbed.offer(release, f"demo-{claim}", volume, tmp_path / claim, namespace)
        yield Person(release, tmp_path)
        release.cluster.kubectl("delete", "storageclass", namespace)


@pytest.fixture(scope="module")
def tools(request: pytest.FixtureRequest) -> set[str]:
    """The tools of the module's LOOKS that its IMAGE has."""
    return testbed.tools_in(request.module.IMAGE, request.module.LOOKS)


@pytest.fixture
def need(request: pytest.FixtureRequest, tools: set[str]) -> Need:
    """Skips the test where the module's IMAGE lacks a tool."""

    def need(tool: str) -> None:
        if tool not in tools:
            pytest.skip(f"{tool} is not in {request.module.IMAGE}")

    return need
