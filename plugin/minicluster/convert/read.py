"""MiniClusters of flux-operator and MPIJobs, read as kubectl reads them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from minicluster.convert.mpijob.job_pods import OF_KUBEFLOW
from minicluster.documents import map_at, value_at, yamlio
from minicluster.errors import ConvertError
from minicluster.kube.names import INDEX
from minicluster.render.stream import MPI_OPERATOR, OPERATOR

#: Kinds that are converted: the group and the versions of each
KINDS = {"MiniCluster": (OPERATOR, ("v1alpha1", "v1alpha2")), "MPIJob": (MPI_OPERATOR, ("v2beta1",))}


@dataclass(frozen=True)
class Document:
    """A MiniCluster of flux-operator, or an MPIJob."""

    kind: str
    version: str  #: v1alpha1, v1alpha2 or v2beta1
    name: str
    namespace: str  #: "" for none
    labels: dict[str, Any]
    spec: dict[str, Any]  #: a copy, without null


def read(data: bytes) -> tuple[list[Document], list[Any]]:
    """Return what is converted of a stream, and the other objects. Raises ConvertError."""
    try:
        documents = [d for chunk in yamlio.load_all(data) if chunk is not None for d in each_object(chunk)]
    except yaml.YAMLError as error:
        why = yamlio.problem(error)
        is_template = b"{{" in data or b"{%" in data
        raise ConvertError(f"the file {why}{'; it is a template: render it first' if is_template else ''}") from None
    convertible = [d for d in documents if is_converted(d)]
    if not convertible:
        raise ConvertError(
            f"there is no MiniCluster of {OPERATOR} and no MPIJob of {MPI_OPERATOR} in the file: give one of them"
        )
    for problem in filter(None, map(other_version, convertible)):
        raise ConvertError(problem)
    return [_document(d) for d in convertible], [d for d in documents if not is_converted(d)]


def is_list(document: Any) -> bool:
    """Tell a list of objects, as `kubectl get -o yaml` makes of several, from an object."""
    is_kind = isinstance(document, dict) and str(document.get("kind")).endswith("List")
    return is_kind and isinstance(document.get("items"), list)


def each_object(document: Any) -> Iterator[Any]:
    """Yield the objects of a list, with those of lists in it; any other document is its own object.

    As for kubectl, an item of a `MiniClusterList` without a kind is a `MiniCluster` (UnstructuredJSONScheme).
    """
    if not is_list(document):
        yield document
        return
    kind = str(document["kind"]).removesuffix("List")
    default = {"apiVersion": document.get("apiVersion"), "kind": kind} if kind else {}
    for item in document["items"]:
        yield from each_object({**default, **item} if isinstance(item, dict) and default else item)


def is_converted(document: Any) -> bool:
    """Tell a MiniCluster of flux-operator, or an MPIJob, from other objects."""
    kind = value_at(document, "kind")
    group = KINDS[kind][0] if isinstance(kind, str) and kind in KINDS else None
    return group is not None and str(document.get("apiVersion")).partition("/")[0] == group


def other_version(document: Any) -> str:
    """Return why an object of these kinds can't be converted, if it is of a version that is not known; else ""."""
    group, versions = KINDS[document["kind"]]
    if str(document["apiVersion"]).partition("/")[2] in versions:
        return ""
    known = " or ".join(f"{group}/{version}" for version in versions)
    return f"{title(document)} has the apiVersion {document['apiVersion']}: give {known}"


def title(document: Any) -> str:
    """Return kind and name of an object."""
    if not isinstance(document, dict):
        return "a document"
    return f"{document.get('kind') or 'an object'} {value_at(document, 'metadata', 'name') or 'without a name'}"


def _document(document: dict[str, Any]) -> Document:
    metadata = map_at(document, "metadata")
    kind, name = document["kind"], metadata.get("name")
    a_kind = f"a{'n' if kind.startswith('MPI') else ''} {kind}"
    if not name:
        made_up = "generateName" in metadata
        raise ConvertError(
            f"{a_kind} has metadata.generateName and no name: a release has one name for good; give metadata.name"
            if made_up
            else f"{a_kind} has no metadata.name: set it to the name of the release"
        )
    if not isinstance(name, str):
        raise ConvertError(f"the metadata.name of {a_kind} is {json.dumps(name)}: must be a string")
    spec = _fresh(document.get("spec"))
    if not isinstance(spec, dict):
        raise ConvertError(f"{kind} {name} has no spec: give the whole document")
    version = document["apiVersion"].rpartition("/")[2]
    return Document(kind, version, name, str(metadata.get("namespace") or ""), map_at(metadata, "labels"), spec)


def _fresh(value: Any) -> Any:
    """Return a copy as kubectl makes it: keys are strings, null is left out, and no two parts are one object."""
    if isinstance(value, dict):
        return {
            key if isinstance(key, str) else json.dumps(key): _fresh(item)
            for key, item in value.items()
            if item is not None
        }
    if isinstance(value, list):
        return [_fresh(item) for item in value]
    return value


#: Label that Kubernetes gives each pod of a Job
JOB_LABEL = "batch.kubernetes.io/job-name"


def remark(document: Any, names: Sequence[str]) -> str:
    """Return a sentence about an object that is not converted; ``names`` are those of the MiniClusters."""
    return selector_remark(document, names) or f"{title(document)} is not converted: apply it as before"


def selector_remark(document: Any, names: Sequence[str]) -> str:
    """Return what to change in a Service that selects pods by labels that only an operator sets; "" for any other."""
    selector = map_at(document, "spec", "selector") if value_at(document, "kind") == "Service" else {}
    gone = {key: value for key, value in selector.items() if _is_of_operator(key, value, names)}
    if not gone:
        return ""
    kept = {key: value for key, value in selector.items() if key not in gone}
    if not kept.keys() & {JOB_LABEL, "job-name"}:
        only = names[0] if len(names) == 1 else "NAME"
        kept[JOB_LABEL] = str(
            gone.get("hpa-selector") or gone.get(OF_KUBEFLOW + "job-name") or gone.get("app.kubernetes.io/name") or only
        )
    if "job-index" in gone:
        kept[INDEX] = str(gone["job-index"])
    return (
        f"{title(document)} selects pods by {', '.join(gone)}, as only an operator labels them: "
        f"apply it with the selector {json.dumps(kept)}"
    )


def _is_of_operator(key: Any, value: Any, names: Sequence[str]) -> bool:
    """Tell whether only flux-operator or mpi-operator gives pods this label."""
    return (
        str(key).startswith(OF_KUBEFLOW)
        or key in ("job-index", "hpa-selector")
        or (key, value)
        in (
            ("app", "flux-operator"),
            *(("app.kubernetes.io/name", name) for name in names),
        )
    )
