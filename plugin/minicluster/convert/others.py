"""What is said of the objects beside the MiniClusters: apply them as before, or a Service with another selector."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from minicluster.convert.mpijob.job_pods import OF_KUBEFLOW
from minicluster.convert.read import title
from minicluster.kube.names import INDEX

#: Label that Kubernetes gives each pod of a Job
JOB_LABEL = "batch.kubernetes.io/job-name"


def remarks(objects: Sequence[Any], names: Sequence[str]) -> list[str]:
    """Return a sentence for each object; ``names`` are those of the MiniClusters."""
    return [_remark(one, names) for one in objects]


def _remark(document: Any, names: Sequence[str]) -> str:
    return selector_remark(document, names) or f"{title(document)} is not converted: apply it as before"


def selector_remark(document: Any, names: Sequence[str]) -> str:
    """Return what to change in a Service that selects pods by labels that only an operator sets; "" for any other."""
    selector = _selector(document)
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


def _selector(document: Any) -> Mapping[str, Any]:
    """Return the labels by which a Service selects pods; none for any other object."""
    spec = document.get("spec") if isinstance(document, dict) and document.get("kind") == "Service" else None
    selector = spec.get("selector") if isinstance(spec, dict) else None
    return selector if isinstance(selector, dict) else {}


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
