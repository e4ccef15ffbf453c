"""Where Flux is on this machine, and clusters of it."""

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from broker_pods import SCHEDULERS, UNSHARE, Cluster, Flux, Image, Make
from releases import Install, Release, create_namespace, run, values_of


@pytest.fixture(scope="session", params=SCHEDULERS)
def flux(request: pytest.FixtureRequest) -> Flux:
    """The Flux of this machine with each scheduler; a skip where it is missing, or where it can't be given pods."""
    prefix = os.environ.get("FLUX_PREFIX")
    found = shutil.which("flux", path=f"{prefix}/bin" if prefix else None)
    if not found:
        pytest.skip("flux is neither in PATH nor in $FLUX_PREFIX/bin")
    if not shutil.which("unshare") or subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespaces of one's own here (unshare --mount --pid)")
    path = Path(found)
    tree = path.parents[1]
    if request.param == "Fluxion" and not list(tree.glob("lib*/**/flux/modules/sched-fluxion-qmanager.so")):
        pytest.skip(f"no Fluxion (flux-sched) in {tree}")
    # a view is a tree of links over the prefixes of flux-core, flux-sched and more
    return Flux(path, tree if path.is_symlink() else None, request.param)


@pytest.fixture
def make(flux: Flux, tmp_path: Path) -> Iterator[Make]:
    """Makes clusters that end with the test: values, what the runner has, what its image is."""
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
    namespace = f"minicluster-test-{secrets.token_hex(4)}"
    create_namespace(namespace)
    lead = Release(namespace, "helm", values_of({}, {}, "image"), tmp_path_factory.mktemp("schedulers")).install()
    lead.wait_for("0")
    found = ["sched-simple", *(["Fluxion"] if "scheduler: Fluxion" in lead.log(0) else [])]
    run("kubectl", "-n", namespace, "delete", "jobs", "--all", "--wait=false")
    run("kubectl", "delete", "namespace", namespace, "--wait=false")
    return found


@pytest.fixture(params=SCHEDULERS)
def scheduler(request: pytest.FixtureRequest, schedulers: list[str]) -> str:
    """Each scheduler."""
    if request.param not in schedulers:
        pytest.skip("no Fluxion (flux-sched) in MINICLUSTER_TEST_VIEW_IMAGE")
    return str(request.param)


@pytest.fixture
def release(tmp_path: Path, scheduler: str) -> Iterator[Install]:
    """Installs clusters that go with the test: values, then what the runner has."""
    namespaces: list[str] = []

    def release(values: dict[str, Any], runner: dict[str, Any] | None = None, **how: Any) -> Release:
        namespaces.append(f"minicluster-test-{secrets.token_hex(4)}")
        create_namespace(namespaces[-1], how.get("labels", ()))
        all_values = values_of(values, runner or {}, how.get("mode", "image"), scheduler)
        options = how.get("options", ())
        return Release(namespaces[-1], how.get("helm", "helm"), all_values, tmp_path).install(*options)

    yield release
    for name in namespaces:
        # a namespace that goes with a Job that has backoffLimitPerIndex never goes: the Job first
        run("kubectl", "-n", name, "delete", "jobs", "--all", "--wait=false", "--ignore-not-found")
        run("kubectl", "delete", "namespace", name, "--wait=false", "--ignore-not-found")


@pytest.fixture
def volume() -> Iterator[str]:
    """The name of a volume that goes with the test; `bind` makes it."""
    name = f"minicluster-test-{secrets.token_hex(4)}"
    yield name
    run("kubectl", "delete", "persistentvolume", name, "--ignore-not-found", "--wait=false")
