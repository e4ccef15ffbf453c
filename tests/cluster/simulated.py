"""Namespaces and pods on the simulated nodes of tools/embedded.py."""

import itertools

from tools.embedded import EmbeddedCluster
from tools.releases import Release

_numbers = itertools.count()


def new_namespace(cluster: EmbeddedCluster, **labels: str) -> str:
    """Make a namespace in which pods can start, and return its name."""
    name = f"test-{next(_numbers)}"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    cluster.wait("the service account", lambda: bool(cluster.get("serviceaccount", "default", "--namespace", name)))
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
