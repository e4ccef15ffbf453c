"""The stream of YAML documents that Helm hands to a post-renderer.

The stream is split as text, and only a document that can be a MiniCluster is parsed. The other objects of our chart get
their own API version, and all else passes through byte for byte.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from minicluster.documents import map_at, yamlio
from minicluster.errors import StreamError
from minicluster.render.constants import IMMUTABLE

#: API version, in the chart's group, and kind of the hand-over document
API_VERSION = "v1"
KIND = "MiniCluster"
#: Group of flux-operator's MiniClusters, and of mpi-operator's MPIJobs
OPERATOR = "flux-framework.org"
MPI_OPERATOR = "kubeflow.org"
#: The variable by which the post-renderer knows that Helm was called for one of these
INNER = "MINICLUSTER_INNER_HELM"

#: The most bytes that are checked of a stream without a MiniCluster: a parser takes seconds for some megabytes
CHECKED_BYTES = 1 << 18

# A line that starts with `---` at the margin separates documents, also within a block scalar, whose own lines are
# indented (YAML 1.2, 9.1.4).
_MARKER = re.compile(rb"^---(?=[ \t\r\n]|$)[^\n]*\n?", re.MULTILINE)

_JOB = re.compile(rb"^kind:[ \t]*[\"']?Job\b", re.MULTILINE)

#: Makes of each MiniCluster document those that replace it; it gets all of a stream, which may share some
Expand = Callable[[Sequence[dict[str, Any]]], Iterable[Iterable[Mapping[str, Any]]]]
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


def split(data: bytes) -> Iterator[bytes]:
    """Yield the documents of a stream, each with its marker; joined they are the stream."""
    start = 0
    for marker in _MARKER.finditer(data):
        if marker.start() > start:
            yield data[start : marker.start()]
            start = marker.start()
    if start < len(data):
        yield data[start:]


def may_have_others(data: bytes) -> bool:
    """Tell whether a text may have a MiniCluster of flux-operator or an MPIJob, without reading it."""
    return OPERATOR.encode() in data or (MPI_OPERATOR.encode() in data and b"MPIJob" in data)


def parse(chunk: bytes) -> dict[str, Any] | None:
    """Return the MiniCluster in a document, None for anything else.

    Raises StreamError for a document that names our group and isn't YAML, has no kind, or is of an unknown version.
    """
    if API_GROUP.encode() not in chunk:
        return None
    if VERSION_LINE.search(chunk) and (kind := KIND_LINE.search(chunk)) and kind[1] != KIND.encode():
        return None  # without the parser, which takes a hundred times as long
    try:
        document = yamlio.load(chunk)
    except yaml.YAMLError as error:
        raise StreamError(f"a MiniCluster document {yamlio.problem(error)}") from None
    if not isinstance(document, dict):
        return None
    group, _, version = str(document.get("apiVersion")).partition("/")
    if group != API_GROUP or document.get("kind", KIND) != KIND:
        return None
    if "kind" not in document:  # it is the last line of the chart's
        raise StreamError("a MiniCluster document is cut off: give all that Helm renders")
    if version != API_VERSION:
        raise StreamError(
            f"{document.get('apiVersion')} {KIND}: this post-renderer knows {API_GROUP}/{API_VERSION} {KIND} only; use "
            "the minicluster package of the chart's version"
        )
    return document


def render(data: bytes, expand: Expand) -> Iterator[bytes]:
    """Yield the stream with each MiniCluster document replaced by what ``expand`` makes of it.

    What is made comes before the first Job: Helm 3 creates objects in this order, and a pod that finds no ConfigMap
    waits for the kubelet's next try.

    Raises StreamError for a stream that is empty, is not YAML, has two MiniClusters of one name, or lacks one.
    """
    if not data.strip():
        raise StreamError(
            "the stream is empty: pipe the output of `helm template` in. A step before minicluster may have failed: "
            "set -o pipefail; Helm 3's --output-dir goes past a post-renderer: use `minicluster template --output-dir`"
        )
    seen: set[tuple[str, str]] = set()
    first: list[bytes | dict[str, Any]] = []
    jobs: list[bytes] = []  # from the first Job on
    parts: dict[str, bytes] = {}  # one object of ours for each MiniCluster
    for chunk in split(data):
        document = parse(chunk)
        if document is None:
            own, cluster = release(chunk)
            if cluster is not None:
                parts[cluster] = own
            (jobs if jobs or _JOB.search(own) else first).append(own)
            continue
        _check_unique(document, seen)
        first.append(document)
    documents = [one for one in first if isinstance(one, dict)]
    if not seen:
        _check_yaml(data)
        parts.update(of_older_charts(jobs, data))
    refuse_orphans(parts.items(), set(map(name, documents)))
    made = iter(expand(documents))
    for one in first:
        yield from [one] if isinstance(one, bytes) else map(yamlio.dump_manifest, next(made))
    assert next(made, None) is None, "more MiniClusters were rendered than the stream has"
    if first and jobs and not _MARKER.match(jobs[0]):
        yield b"---\n"
    yield from jobs


def _check_unique(document: Mapping[str, Any], seen: set[tuple[str, str]]) -> None:
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        raise StreamError("a MiniCluster document has no metadata: give it a name and a namespace")
    key = (str(metadata.get("namespace")), str(metadata.get("name")))
    if key in seen:
        raise StreamError(
            f"two MiniCluster documents are named {key[1]} in namespace {key[0]}: give one a nameOverride"
        )
    seen.add(key)


def _check_yaml(data: bytes) -> None:
    """Raise StreamError for a stream that isn't Kubernetes manifests; a MiniCluster is not needed.

    Only the begin of a long stream is checked: Helm parses all of it.
    """
    begin = data[:CHECKED_BYTES]
    try:
        for is_map in yamlio.are_maps(begin):
            if not is_map:
                raise StreamError("the stream is not Kubernetes manifests: pipe the output of `helm template` in")
    except yaml.YAMLError as error:
        if len(begin) == len(data) or not _is_at_end(error, begin):
            raise StreamError(f"the stream {yamlio.problem(error)}") from None


def _is_at_end(error: yaml.YAMLError, data: bytes) -> bool:
    """Tell whether an error is at the end of data, which may be cut within a line or a character."""
    mark = getattr(error, "problem_mark", None)
    return mark.line >= data.count(b"\n") if mark else getattr(error, "position", 0) >= len(data) - 4


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
    return str(map_at(document, "metadata", "labels").get(INSTANCE) or map_at(document, "metadata").get("name"))


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
