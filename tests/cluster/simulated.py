"""The clusters of tools/embedded.py, and namespaces and pods on their simulated nodes."""

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from quick import QuickCluster
from support import BIN

from tools import tenant
from tools.releases import Release
from tools.tenant import Tenant

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kubectl")
#: All workers use one cluster
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "gw")
_numbers = itertools.count()


def need_programs() -> None:
    """Skip the test where a program is missing."""
    missing = [name for name in PROGRAMS if not (BIN / name).exists()]
    if missing:
        pytest.skip(f"{', '.join(missing)} missing: run `make tools`")


@contextmanager
def started(folder: Path, **options: Any) -> Iterator[QuickCluster]:
    """Run a cluster until the end of the block; skip the test where a program is missing."""
    need_programs()
    with QuickCluster(BIN, folder / "work", **options) as cluster:
        tenant.govern(cluster)
        yield cluster


def new_namespace(cluster: QuickCluster, world: Tenant = tenant.SHARED, **labels: str) -> str:
    """Make a namespace in which pods can start, in a user's world, and return its name."""
    name = f"test-{WORKER}-{next(_numbers)}"
    metadata = {"name": name, "labels": world.namespace_labels | labels}
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    if not cluster.nodes:  # and so no controllers
        cluster.create(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        )
    cluster.wait("the service account", lambda: bool(cluster.get("serviceaccount", "default", "--namespace", name)))
    tenant.arrange(cluster, name, world if cluster.nodes else world.without("quota"))
    return name


def end(release: Release, index: int, code: int) -> None:
    """Let the containers of a pod end with an exit code."""
    release.cluster.end_pod(release.namespace, release.live_pods()[index]["metadata"]["name"], code)


def live(release: Release) -> None:
    """Install, scale, roll back and uninstall a release."""
    release.install(size=1, maxSize=2)
    uids = release.running(1)
    release.upgrade(size=2)
    assert release.running(2)[0] == uids[0]
    release.ok("rollback", "1")
    release.ok("uninstall", "--wait")
