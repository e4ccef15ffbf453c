"""The objects of our chart, which await the post-renderer: their API version is one that no API server has.

So an object that got past the post-renderer, or lost its MiniCluster document on the way, is never created.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from minicluster.documents import yamlio
from minicluster.errors import StreamError
from minicluster.render.constants import IMMUTABLE

#: Group of all that the chart renders, hooks aside. An object's own group and version are its version. The error of
#: Kubernetes says what to add.
API_GROUP = "post-renderer-required.add--post-renderer-minicluster"
#: Label with the name of the MiniCluster
INSTANCE = "app.kubernetes.io/instance"

VERSION_LINE = re.compile(rb"^apiVersion:[ \t]*[\"']?(" + API_GROUP.encode() + rb"/[\w.-]+)", re.MULTILINE)
KIND_LINE = re.compile(rb"^kind:[ \t]*[\"']?(\w+)", re.MULTILINE)
_NAME_LINE = re.compile(rb"^  name:[ \t]*[\"']?([\w.-]+)", re.MULTILINE)
_CONFIG_LINE = rb"^  name:[ \t]*[\"']?[\w.-]*CLUSTER-config"
_CLUSTER_LINE = re.compile(INSTANCE.encode() + rb":[ \t]*[\"']?([\w.-]+)")


def release(chunk: bytes) -> tuple[bytes, str | None]:
    """Return an object of ours with its own API version, and the name of its MiniCluster; any other as it is, and None.

    Raises StreamError for one that isn't YAML.
    """
    version, cluster = VERSION_LINE.search(chunk), _CLUSTER_LINE.search(chunk)
    if version and cluster:
        own = _own(version[1].decode()).encode()
        return chunk[: version.start(1)] + own + chunk[version.end(1) :], cluster[1].decode()
    if API_GROUP.encode() not in chunk:
        return chunk, None
    # another notation, such as JSON
    try:
        document = yamlio.load(chunk, duplicates=True)
    except yaml.YAMLError as error:
        raise StreamError(f"a document of the chart {yamlio.problem(error)}") from None
    if not (isinstance(document, dict) and str(document.get("apiVersion")).startswith(f"{API_GROUP}/")):
        return chunk, None
    return yamlio.dump({**document, "apiVersion": _own(document["apiVersion"])}), name(document)


def _own(version: str) -> str:
    """Return the API version that an object of our group has in Kubernetes.

    >>> _own(f"{API_GROUP}/batch.v1"), _own(f"{API_GROUP}/v1")
    ('batch/v1', 'v1')
    """
    group, _, version = version.partition("/")[2].rpartition(".")
    return f"{group}/{version}" if group else version


def name(document: Mapping[str, Any]) -> str:
    """Return the name of the MiniCluster that a document of the chart belongs to, or is."""
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    labels = metadata.get("labels")
    return str((labels if isinstance(labels, dict) else {}).get(INSTANCE) or metadata.get("name"))


def refuse_orphans(objects: Iterable[tuple[str, bytes]], clusters: set[str]) -> None:
    """Raise StreamError for an object, by its MiniCluster, whose MiniCluster document is not in the stream."""
    for cluster, chunk in objects:
        if cluster not in clusters:
            words = [
                match[1].decode() if match else "?" for match in (KIND_LINE.search(chunk), _NAME_LINE.search(chunk))
            ]
            raise StreamError(
                f"the {' '.join(words)} is in the stream, and the document of its MiniCluster {cluster} is not: it was "
                "cut off, or a step before minicluster dropped it; give all that Helm renders"
            )


def of_older_charts(jobs: Iterable[bytes], stream: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the Jobs of older charts, which have their own API version, unless their ConfigMap is in the stream.

    A stream that was rendered has it; kustomize may have changed its name.
    """
    for job in jobs:
        cluster = _CLUSTER_LINE.search(job) if IMMUTABLE.encode() in job else None
        if cluster and not re.search(_CONFIG_LINE.replace(b"CLUSTER", re.escape(cluster[1])), stream, re.MULTILINE):
            yield cluster[1].decode(), job
