"""A control plane with simulated Kubernetes nodes, and a Helm beside it, for benchmarks that install releases."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.clients import BIN, Helm
from tools.embedded import EmbeddedCluster

#: Pods of a node
NODE_PODS = 240


@contextmanager
def room_for(pods: int, qps: int = 200) -> Iterator[tuple[EmbeddedCluster, Helm]]:
    """Start a cluster whose nodes have room for so many pods; qps are the controllers' requests a second."""
    nodes = 1 + pods // NODE_PODS
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedCluster(BIN, Path(folder, "k8s"), nodes=nodes, qps=qps) as cluster,
    ):
        yield cluster, Helm("helm", Path(folder), {"KUBECONFIG": str(cluster.kubeconfig)})
