"""A flux-operator MiniCluster, or an MPIJob (mpijob), as values of the chart.

Most fields of a MiniCluster have the same names; some mean something else to flux-operator (API v1alpha2 at commit
0d75cef8, v1alpha1 at 76c4754f: types, controllers/flux and pkg/flux). The values run what it ran: its defaults are
written out where the chart has others, and what it ignored is dropped. Each such change is a warning, or a comment at
the head of the file when there is nothing to do about it. Those that matter most are in
docs/reference/flux-operator.md.
"""

from collections.abc import Callable
from typing import Any

from minicluster.convert import containers, fields, mpijob, shell_text, v1alpha1, volumes
from minicluster.convert.part import Map, Part, Report, ValuesFile
from minicluster.convert.read import (
    Document,
    each_object,
    is_converted,
    is_list,
    other_version,
    read,
    remark,
    selector_remark,
)
from minicluster.errors import ConvertError, MiniClusterError
from minicluster.kube.names import RELEASE_CHARACTERS
from minicluster.render import postrender
from minicluster.render.load import load
from minicluster.render.model import MiniClusterModel

__all__ = [
    "ConvertError",
    "ValuesFile",
    "convert",
    "each_object",
    "is_converted",
    "is_list",
    "other_version",
    "selector_remark",
]


#: Each step changes the spec in place and reports; later ones rely on earlier ones
STEPS: tuple[Callable[[Part], None], ...] = (
    fields.drop_unsupported,
    containers.drop_users,
    containers.rename_snippets,
    shell_text.take_resources,
    fields.move_lead_broker,
    containers.move_capabilities,
    fields.drop_zeros,
    containers.drop_zeros,
    fields.write_defaults,
    containers.write_images,
    fields.warn_of_arch,
    fields.convert_pod,
    fields.warn_of_differences,
    fields.convert_flux,
    containers.convert_runners,
    containers.convert_work,
    containers.convert_sidecars,
    containers.convert_services,
    containers.expand_environment,
    shell_text.warn_of_operator_names,
    shell_text.warn_of_view,
    shell_text.warn_of_exits,
    volumes.convert_volumes,
)


def convert(data: bytes) -> tuple[list[ValuesFile], list[str]]:
    """Return the values of each MiniCluster and MPIJob in a stream, and warnings about the rest of it.

    Raises MiniClusterError for what can't be carried over.
    """
    documents, objects = read(data)
    values = [_convert(document) for document in documents]
    names = [one.name for one in values]
    for name in names:
        if names.count(name) > 1:
            raise ConvertError(f"two of them are named {name}: give each a file of its own")
    return values, [remark(one, names) for one in objects]


def _convert(document: Document) -> ValuesFile:
    report = Report()
    is_job = document.kind == mpijob.MPI_JOB
    values = _of_mpi_operator(document, report) if is_job else _of_flux_operator(document, report)
    release = document.name[:RELEASE_CHARACTERS].rstrip("-.")
    if release != document.name:
        values["nameOverride"] = document.name
        report.notes.append(f"nameOverride: a release's name has at most {RELEASE_CHARACTERS} characters")
    report.warnings += postrender.remarks(_checked(document, values))
    warnings = [f"{document.kind} {document.name}: {' '.join(warning.split())}" for warning in report.warnings]
    return ValuesFile(document.kind, document.name, document.namespace, release, values, report.notes, warnings)


def _of_flux_operator(document: Document, report: Report) -> Map:
    whole = Part("", document.spec, report)
    if document.version == "v1alpha1":
        v1alpha1.convert_spec(whole)
    v1alpha1.convert_volumes(whole)
    for step in STEPS:
        step(whole)
    return document.spec


def _of_mpi_operator(document: Document, report: Report) -> Map:
    try:
        return mpijob.values(document.name, document.spec, document.labels, report)
    except MiniClusterError as error:
        raise ConvertError(f"MPIJob {document.name}: {error}") from None


def _checked(document: Document, values: Map) -> MiniClusterModel:
    """Return the cluster. Raises the error that the post-renderer would."""
    metadata: dict[str, Any] = {"name": document.name, "namespace": document.namespace}
    cluster = load({"metadata": metadata, "spec": values})
    for _ in postrender.documents(cluster, lambda: (b"0" * 40, b"0" * 40)):
        pass
    return cluster
