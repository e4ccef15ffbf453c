"""What a release has: its MiniClusters, other things, and the claims that stay when it is removed."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from minicluster import yamlio
from minicluster.errors import ToolError
from minicluster.kube.port import KubePort
from minicluster.render.constants import GROUP_LABEL, IMMUTABLE
from minicluster.render.stream import split

NAME_LABEL = "app.kubernetes.io/name"


class Contents(NamedTuple):
    """The objects of a release."""

    is_ours: bool  #: whether it has any of a MiniCluster
    clusters: list[str]  #: names of MiniClusters
    others: list[str]  #: KIND NAME of what is of no MiniCluster
    kept: list[str]  #: names of claims that stay


def read(kubernetes: KubePort, release: str) -> Contents | None:
    """Return what a release has; None when there is no such release. Raises ToolError."""
    try:
        text = kubernetes.helm("get", "manifest", release)
    except ToolError as error:
        if "release: not found" in str(error):
            return None
        raise
    return contents(text.encode())


def contents(manifest: bytes) -> Contents:
    """Return what a manifest has."""
    items = list(_objects(manifest))
    ours = [item for item in items if _labels(item).get(NAME_LABEL) == "minicluster"]
    return Contents(
        is_ours=bool(ours),
        clusters=[item["metadata"]["name"] for item in ours if _is_cluster(item)],
        others=[f"{item['kind']} {item['metadata']['name']}" for item in items if item not in ours],
        kept=[
            item["metadata"]["name"]
            for item in items
            if item["kind"] == "PersistentVolumeClaim"
            and _metadata(item, "annotations").get("helm.sh/resource-policy") == "keep"
        ],
    )


def _objects(manifest: bytes) -> Iterator[Mapping[str, Any]]:
    for chunk in split(manifest):
        found = yamlio.load(chunk, duplicates=True)
        if isinstance(found, dict) and "metadata" in found:
            yield found


def _metadata(item: Mapping[str, Any], field: str) -> Mapping[str, str]:
    return item["metadata"].get(field) or {}


def _labels(item: Mapping[str, Any]) -> Mapping[str, str]:
    return _metadata(item, "labels")


def _is_cluster(item: Mapping[str, Any]) -> bool:
    return item["kind"] == "Job" and IMMUTABLE in _metadata(item, "annotations") and GROUP_LABEL not in _labels(item)
