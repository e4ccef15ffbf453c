"""The package's list of Kubernetes' fields matches a real API server, also an older one.

With a newer one `--update-golden` adds its fields: `make kubernetes VERSION=1.38.0 ARGS="-k fields --update-golden"`.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from quick import QuickCluster
from support import PACKAGE

FIELDS = PACKAGE / "render" / "kubernetes.json"
#: They contain the types of job.template and pod.template, and of pod.resourceClaims.
ROOTS = ("io.k8s.api.batch.v1.JobTemplateSpec", "io.k8s.api.resource.v1.ResourceClaimSpec")


def reference(part: Mapping[str, Any]) -> str:
    return str(part["$ref"]).rpartition("/")[2]


def kind(part: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Return the type of a field: a JSON type, the name of a type, [type] or {type}."""
    if "$ref" in part:
        name = reference(part)
        short = name.rpartition(".")[2]
        return (
            short
            if "properties" in definitions[name] or short in ("Quantity", "IntOrString")
            else kind(definitions[name], {})
        )
    if part["type"] == "array":
        return f"[{kind(part['items'], definitions)}]"
    if "additionalProperties" in part:
        return f"{{{kind(part['additionalProperties'], definitions)}}}"
    return str(part["type"])


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if "$ref" in part:
            yield reference(part)
        for inner in part.values():
            yield from references(inner)


Fields = dict[str, dict[str, str]]


def fields(document: Mapping[str, Any]) -> Fields:
    """Return the fields of the types that a Job and a resource claim are made of; an older API server has no claims."""
    definitions = document["definitions"]
    found: Fields = {}
    names = [root for root in ROOTS if root in definitions]
    while names:
        name = names.pop()
        properties = definitions[name].get("properties")
        short = name.rpartition(".")[2]
        if properties and short not in found:
            found[short] = {key: kind(part, definitions) for key, part in properties.items()}
            names += references(definitions[name])
    return found


def minor(version: str) -> tuple[int, int]:
    """Return the major and minor version of Kubernetes."""
    first, second = version.removeprefix("v").split(".")[:2]
    return int(first), int(second)


def with_new(known: Fields, found: Fields, version: str) -> Fields:
    """Return the fields of a newer API server; fields that were unknown get this version."""

    def field(name: str, key: str, plain: str) -> str:
        old = known.get(name, {}).get(key, "")
        return old if old.partition(" since ")[0] == plain else f"{plain} since {version}"

    return {name: {key: field(name, key, found[name][key]) for key in sorted(found[name])} for name in sorted(found)}


def of_version(known: Fields, version: str) -> Fields:
    """Return the fields that an API server of this version has."""
    there: Fields = {}
    for name, keys in known.items():
        for key, text in keys.items():
            plain, _, since = text.partition(" since ")
            if not since or minor(since) <= minor(version):
                there.setdefault(name, {})[key] = plain
    return there


def text_of(known: Fields, version: str) -> str:
    """Return the text of the file, one type a line."""
    types = ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in known.items())
    return f'{{"version": {json.dumps(version)}, "types": {{\n{types}\n}}}}\n'


def test_the_list_of_kubernetes_fields_matches_the_api_server(api: QuickCluster, update_golden: bool) -> None:
    document = json.loads(api.kubectl("get", "--raw", "/openapi/v2"))
    found, version = fields(document), ".".join(map(str, minor(document["info"]["version"])))
    file = json.loads(FIELDS.read_text(encoding="utf-8"))
    if update_golden and minor(version) >= minor(file["version"]):
        file = {"version": version, "types": with_new(file["types"], found, version)}
        FIELDS.write_text(text_of(file["types"], version), encoding="utf-8")
    if minor(version) < minor(file["version"]):
        # an older one may have fields that are gone since
        known = {name: file["types"].get(name, {}).keys() for name in found}
        found = {name: {key: k for key, k in found[name].items() if key in known[name]} for name in found}
        found = {name: keys for name, keys in found.items() if keys}
    assert of_version(file["types"], version) == found
