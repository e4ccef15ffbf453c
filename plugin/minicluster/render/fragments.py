"""What of the values is Kubernetes' own, a security context as `pod.template`, against the fields that it has.

The API server would refuse the same, but when half of a release is there. ``kubernetes.json`` has the fields, and what
each is, of all types in a pod template: from the OpenAPI document of that version's API server (/openapi/v2).
"""

import difflib
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minicluster.render.spec import MiniCluster

FIELDS = Path(__file__).parent / "kubernetes.json"
#: A quantity that can't be negative (apimachinery/pkg/api/resource/quantity.go), as in the schema.
QUANTITY = r"\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]+)?"
#: Ids, which begin at 0.
IDS = ("runAsUser", "runAsGroup", "fsGroup")


def refusals(cluster: "MiniCluster") -> Iterator[str]:
    """Yield what is no field, or not what the field is; a newer Kubernetes may have fields that we don't know."""
    for place, kind, value in fragments(cluster):
        if value:
            yield from _problems(place, kind, value, newer=_is_newer(cluster.kubernetes))


def fragments(cluster: "MiniCluster") -> Iterator[tuple[str, str, Any]]:
    """Yield the parts of a spec that Kubernetes defines, each with its place and its type."""
    pod, view = cluster.spec["pod"], cluster.flux["container"]
    containers = {"flux.container": view, "agent": cluster.spec["agent"]} | {
        f"{group}[{n}]": container
        for group in ("containers", "services")
        for n, container in enumerate(cluster.spec[group])
    }
    for place, container in containers.items():
        yield f"{place}.securityContext", "SecurityContext", container.get("securityContext")
        yield f"{place}.resources.claims", "[ResourceClaim]", container.get("resources", {}).get("claims")
    yield "pod.securityContext", "PodSecurityContext", pod["securityContext"]
    yield "pod.tolerations", "[Toleration]", pod["tolerations"]
    yield "pod.topologySpreadConstraints", "[TopologySpreadConstraint]", pod["topologySpreadConstraints"]
    yield "pod.template", "PodTemplateSpec", pod["template"]


@cache
def _known() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(FIELDS.read_text(encoding="utf-8"))
    return known


def _is_newer(version: str) -> bool:
    """Tell whether a version of Kubernetes is later than the fields that we know; "" is not known, and so not."""
    found = re.match(r"v?(\d+)\.(\d+)", version)
    major, minor = map(int, _known()["version"].split("."))
    return found is not None and (int(found[1]), int(found[2])) > (major, minor)


def _problems(place: str, kind: str, value: Any, newer: bool) -> Iterator[str]:
    types = _known()["types"]
    if kind[0] == "[" and isinstance(value, list):
        for n, item in enumerate(value):
            yield from _problems(f"{place}[{n}]", kind[1:-1], item, newer)
    elif kind[0] == "{" and isinstance(value, dict):
        for key, item in value.items():
            yield from _problems(f"{place}.{key}", kind[1:-1], item, newer)
    elif kind in types and isinstance(value, dict):
        for key, item in value.items():
            if key in types[kind]:
                yield from _problems(f"{place}.{key}", types[kind][key], item, newer)
            elif not newer:
                near = difflib.get_close_matches(key, types[kind], 1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(types[kind])}"
                yield f"{place}.{key} is not a field of Kubernetes' {kind}: {hint}"
    else:
        wanted = _wanted(place, kind, value)
        if wanted:
            shown = json.dumps(value, ensure_ascii=False)
            yield f"{place} is {shown if len(shown) <= 60 else f'{shown[:57]}...'}: must be {wanted}"


def _wanted(place: str, kind: str, value: Any) -> str:  # noqa: PLR0911 - a table
    """Return what a value must be, "" when it is that."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    match kind:
        case "string":
            return "" if isinstance(value, str) else "string"
        case "boolean":
            return "" if isinstance(value, bool) else "boolean"
        case "integer" if is_whole and value < 0 and place.endswith(IDS):
            return "at least 0"
        case "integer":
            return "" if is_whole else "integer"
        case "IntOrString":
            return "" if is_whole or isinstance(value, str) else "integer or string"
        case "Quantity":
            is_quantity = re.fullmatch(f"-?{QUANTITY}", str(value)) and not isinstance(value, bool)
            return "" if is_quantity else "a quantity, e.g. 4, 500m or 8Gi"
    return "array" if kind[0] == "[" else "" if kind == "object" and isinstance(value, dict) else "object"
