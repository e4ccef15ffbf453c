"""Refusals of what Kubernetes defines, such as a security context or `pod.template`: unknown fields, wrong types.

The API server would refuse the same, but only when half of a release is installed. ``kubernetes.json`` has all types of
a pod template, with their fields and the type of each, from the OpenAPI document of that version's API server
(/openapi/v2).
"""

import difflib
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from minicluster.render.model import MiniCluster
from minicluster.render.quantity import WANTED, is_quantity
from minicluster.render.schema import shown

FIELDS = Path(__file__).parent.parent / "kubernetes.json"
#: Ids, which begin at 0.
IDS = ("runAsUser", "runAsGroup", "fsGroup")


def fields(cluster: MiniCluster) -> Iterator[str]:
    """Yield unknown fields and values of a wrong type; a newer Kubernetes may have fields that are not known here."""
    for place, kind, value in _parts(cluster):
        if value:
            yield from _problems(place, kind, value, newer=_is_newer(cluster.kubernetes))


def _parts(cluster: MiniCluster) -> Iterator[tuple[str, str, Any]]:
    """Yield the parts of a spec that Kubernetes defines, each with its place and its type."""
    pod = cluster.spec["pod"]
    for place, container in {**cluster.own_containers, **cluster.containers}.items():
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
    """Tell whether a version of Kubernetes is later than that of the known fields; "", not known, is not."""
    found = re.match(r"v?(\d+)\.(\d+)", version)
    major, minor = map(int, _known()["version"].split("."))
    return found is not None and (int(found[1]), int(found[2])) > (major, minor)


def _problems(place: str, kind: str, value: Any, newer: bool) -> Iterator[str]:
    """Yield what is wrong below a place. A kind is the name of a type, ``[KIND]`` a list, ``{KIND}`` a map of it."""
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
    elif wanted := _wanted(place, kind, value):
        yield f"{place} is {shown(value)}: must be {wanted}"


def _wanted(place: str, kind: str, value: Any) -> str:
    """Return what a value must be, "" when it is that."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if kind == "integer" and is_whole and value < 0 and place.endswith(IDS):
        return "at least 0"
    types: dict[str, tuple[bool, str]] = {
        "string": (isinstance(value, str), "string"),
        "boolean": (isinstance(value, bool), "boolean"),
        "integer": (is_whole, "integer"),
        "IntOrString": (is_whole or isinstance(value, str), "integer or string"),
        "Quantity": (is_quantity(value), WANTED),
        "object": (isinstance(value, dict), "object"),
    }
    is_it, name = types.get(kind, (False, "array" if kind[0] == "[" else "object"))
    return "" if is_it else name
