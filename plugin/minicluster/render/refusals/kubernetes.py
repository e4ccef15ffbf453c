"""Refusals of parts that Kubernetes defines, such as a security context or `job.template`: unknown fields, wrong types.

The API server would refuse them too, but only when half of a release is installed. With Helm 3 it drops unknown fields
without an error.

Quantities that nobody means, such as ten bytes of memory, are refused too: most often the unit is forgotten.

``kubernetes.json`` has all types of a Job and of a resource claim's spec, with their fields and the type of each, from
the OpenAPI documents (/openapi/v2) of the API servers from 1.29 to the version that it names. ``KIND since 1.33`` is a
field that older ones lack.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from minicluster.documents import value_at
from minicluster.kube.names import WANTED, is_quantity, unmeant
from minicluster.render.model import MiniClusterModel
from minicluster.render.schema import shown

FIELDS_FILE = Path(__file__).parent.parent / "kubernetes.json"
#: The first version with a stable API of resource claims.
STABLE_CLAIMS = (1, 34)
#: The first version in which the name of a Service may begin with a digit (RelaxedServiceNameValidation).
DIGITS = (1, 36)
#: Values that Kubernetes defines, beside those of containers, and their types.
TYPED = {
    "pod.securityContext": "PodSecurityContext",
    "pod.tolerations": "[Toleration]",
    "pod.topologySpreadConstraints": "[TopologySpreadConstraint]",
    "pod.template": "PodTemplateSpec",
    "job.template": "JobTemplateSpec",
}
#: Quantities beside those of containers, and their resources.
QUANTITIES = {"state.capacity": "storage", "flux.memoryReserve": "memory", "pod.sharedMemory": "memory"}
#: Ids, which begin at 0.
IDS = ("runAsUser", "runAsGroup", "fsGroup")


def fields(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield unknown fields and values of a wrong type; a newer Kubernetes may have fields that are not known here."""
    version = release(cluster.kubernetes)
    for place, kind, value in _parts(cluster):
        if value:
            yield from _problems(place, kind, value, version)
    for n, claim in enumerate(cluster.spec["pod"]["resourceClaims"]):
        # the values have the form of the first stable version, from which the chart makes the older ones
        spec_version = max(version, STABLE_CLAIMS) if version else None
        yield from _problems(f"pod.resourceClaims[{n}].spec", "ResourceClaimSpec", claim.get("spec", {}), spec_version)


def service_names(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield names of Services that begin with a digit, if this Kubernetes is known to refuse them."""
    version = release(cluster.kubernetes)
    if not version or version >= DIGITS:
        return
    headless = str(cluster.spec["network"]["headlessName"])
    named = {"network.headlessName": headless}
    # there may be others beside the headless one, whose names begin with the cluster's
    has_others = cluster.flux["bursting"]["expose"]["type"] or any(one.get("ports") for one in cluster.sidecars)
    if not headless or has_others:
        named["nameOverride"] = cluster.name
    for key, name in named.items():
        if name[:1].isdigit():
            yield (
                f"the name {name} begins with a digit: Kubernetes has such Services from {DIGITS[0]}.{DIGITS[1]} on, "
                f"this is {version[0]}.{version[1]}; set {key} to a name that begins with a letter"
            )


def _parts(cluster: MiniClusterModel) -> Iterator[tuple[str, str, Any]]:
    """Yield the parts of a spec that Kubernetes defines, each with its place and its type."""
    for place, container in {**cluster.own_containers, **cluster.containers}.items():
        yield f"{place}.securityContext", "SecurityContext", container.get("securityContext")
        yield f"{place}.resources.claims", "[ResourceClaim]", container.get("resources", {}).get("claims")
    for place, kind in TYPED.items():
        yield place, kind, value_at(cluster.spec, *place.split("."))


@cache
def _known() -> dict[str, Any]:
    return dict(json.loads(FIELDS_FILE.read_bytes()))


def release(version: str) -> tuple[int, int] | None:
    """Return major and minor of a version of Kubernetes, ``v1.36.3`` or ``1.36``; None for "", which is not known."""
    match = re.match(r"v?(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else None


def _problems(place: str, kind: str, value: Any, version: tuple[int, int] | None) -> Iterator[str]:
    """Yield what is wrong below a place. A kind is the name of a type, ``[KIND]`` a list, ``{KIND}`` a map of it."""
    types = _known()["types"]
    if kind[0] == "[" and isinstance(value, list):
        for n, item in enumerate(value):
            yield from _problems(f"{place}[{n}]", kind[1:-1], item, version)
    elif kind[0] == "{" and isinstance(value, dict):
        for key, item in value.items():
            yield from _problems(f"{place}.{key}", kind[1:-1], item, version)
    elif kind in types and isinstance(value, dict):
        for key, item in value.items():
            yield from _field_problems(place, kind, key, item, version)
    elif wanted := _wanted(place, kind, value):
        yield f"{place} is {shown(value)}: must be {wanted}"


def _field_problems(place: str, kind: str, key: str, value: Any, version: tuple[int, int] | None) -> Iterator[str]:
    """Yield what is wrong with a field of a type and below it."""
    fields = _known()["types"][kind]
    if key not in fields:
        newest = release(_known()["version"])
        if not (version and newest and version > newest):
            import difflib  # noqa: PLC0415 - a millisecond that only errors need

            near = difflib.get_close_matches(key, fields, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(fields)}"
            yield f"{place}.{key} is not a field of Kubernetes' {kind}: {hint}"
        return
    inner, _, since = fields[key].partition(" since ")
    needed = release(since)
    if version and needed and version < needed:
        yield f"{place}.{key} needs Kubernetes {since}, this is {version[0]}.{version[1]}: remove it"
    else:
        yield from _problems(f"{place}.{key}", inner, value, version)


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


#: The values of a live release that may change: what it has was allowed once, and stays allowed
MUTABLE = ("services[", "hooks.", "flux.bursting.follow.")


def quantities(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield the quantities that are far too small or large."""
    for path, name, value in _all(cluster):
        why = unmeant(name, value) if is_quantity(value) else ""
        if why and not (cluster.installed and path.startswith(MUTABLE)):
            yield f"{path} is {value}, which is {why}"


def _all(cluster: MiniClusterModel) -> Iterator[tuple[str, str, object]]:
    """Yield the path of each quantity that is set, its resource, and the value."""
    groups = {group.place: group.given for group in cluster.groups}
    for place, container in {**cluster.own_containers, **cluster.containers, **groups}.items():
        for kind in ("limits", "requests"):
            for name, value in container.get("resources", {}).get(kind, {}).items():
                yield f"{place}.resources.{kind}.{name}", name, value
        for volume, fields in container.get("volumes", {}).items():
            for key in ("capacity", "emptyDirSizeLimit"):
                yield f"{place}.volumes.{volume}.{key}", "storage", fields.get(key)
    for path, name in QUANTITIES.items():
        yield path, name, value_at(cluster.spec, *path.split("."))
