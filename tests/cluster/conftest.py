"""Fixtures: a real API server with controllers, a scheduler and kwok's simulated nodes; releases in it."""

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import one_cluster
import pytest
from failures import NAME as DEMO
from quick import QuickCluster, QuickHelm
from simulated import need_programs, new_namespace, started
from support import BIN, CHART, Helm

from tools import kueue_beside, tenant
from tools.releases import Release
from tools.tenant import Tenant


@pytest.hookimpl(tryfirst=True)  # before xdist, which reads the groups
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Give the tests of a module to one worker: they share what the module makes.

    The group "nodes" has those that run Kueue, add Kubernetes nodes or count them: one after the other.
    """
    for item in items:
        if item.path.parent == Path(__file__).parent and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.name))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuickCluster]:
    """The cluster of all workers; without workers, one of this process."""
    if "PYTEST_XDIST_WORKER" in os.environ and one_cluster.is_shared():
        need_programs()
        yield QuickCluster(BIN, one_cluster.joined(tmp_path_factory.getbasetemp().parent))
        return
    with started(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def api(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuickCluster]:
    """Start the API server of `make kubernetes VERSION=…`, alone; in `make test` it is that of the cluster."""
    other = os.environ.get("MINICLUSTER_TEST_KUBERNETES")
    if not other:
        yield request.getfixturevalue("cluster")
        return
    folder = tmp_path_factory.mktemp("api") / "work"
    with QuickCluster(BIN, folder, nodes=0, api_server=Path(other) / "bin" / "kube-apiserver") as api:
        tenant.govern(api)
        yield api


@pytest.fixture(scope="module")
def queues(cluster: QuickCluster) -> Iterator[QuickCluster]:
    """Return the cluster with Kueue."""
    if why := kueue_beside.missing():
        pytest.skip(why)
    with kueue_beside.kueue(cluster, cluster.work_dir):
        yield cluster


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Tenant:
    """Return a user's world, without what the test's marks name."""
    return tenant.world_of(request.node.iter_markers("without"))


@pytest.fixture
def namespace(world: Tenant, cluster: QuickCluster) -> str:
    """Make a namespace in which pods can start; what is in it stays, as its end costs half of what a test costs."""
    return new_namespace(cluster, world)


@pytest.fixture(scope="module")
def connected(helm: Helm, cluster: QuickCluster) -> Helm:
    """Both Helms, with the cluster, as its administrator."""
    return QuickHelm(helm.name, helm.home, {"KUBECONFIG": str(cluster.kubeconfig)})


@pytest.fixture(scope="module")
def user(helm: Helm, cluster: QuickCluster) -> Helm:
    """Both Helms, as a user whose only rights are those that a test grants in a namespace."""
    return helm.with_env(KUBECONFIG=cluster.user_kubeconfig)


@pytest.fixture
def release(connected: Helm, cluster: QuickCluster, namespace: str, world: Tenant) -> Release:
    """A release that is not yet installed."""
    return Release(connected, cluster, namespace, world=world)


@pytest.fixture
def release4(helm4: Helm, cluster: QuickCluster, namespace: str, world: Tenant) -> Release:
    """A release of Helm 4, for tests in which Helm makes no difference."""
    helm = QuickHelm("helm", helm4.home, {"KUBECONFIG": str(cluster.kubeconfig)})
    return Release(helm, cluster, namespace, world=world)


@pytest.fixture
def demo(release4: Release) -> Release:
    """A release by the name in the table of failures."""
    return dataclasses.replace(release4, name=DEMO, values={})


@pytest.fixture(scope="session")
def copy_of_chart(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Make a copy of the chart with texts replaced: {file: {old: new}}."""

    def make(changes: Mapping[str, Mapping[str, str]]) -> Path:
        folder = tmp_path_factory.mktemp("chart") / "minicluster"
        for path in CHART.rglob("*"):
            if path.is_file():
                relative = str(path.relative_to(CHART))
                text = path.read_text(encoding="utf-8")
                for old, new in changes.get(relative, {}).items():
                    assert old in text, f"{relative} has no {old!r}"
                    text = text.replace(old, new)
                (folder / relative).parent.mkdir(parents=True, exist_ok=True)
                (folder / relative).write_text(text, encoding="utf-8")
        return folder

    return make
