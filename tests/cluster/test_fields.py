"""The package's list of Kubernetes' fields matches a real API server.

`pytest tests/cluster/test_fields.py --update-golden` writes them anew.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from support import PACKAGE

from tools.embedded import EmbeddedCluster

FIELDS = PACKAGE / "render" / "kubernetes.json"
ROOT = "io.k8s.api.core.v1.PodTemplateSpec"


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


def fields(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the types that a pod template is made of."""
    definitions = document["definitions"]
    found: dict[str, Any] = {}
    names = [ROOT]
    while names:
        name = names.pop()
        properties = definitions[name].get("properties")
        short = name.rpartition(".")[2]
        if properties and short not in found:
            found[short] = {key: kind(part, definitions) for key, part in sorted(properties.items())}
            names += references(definitions[name])
    version = ".".join(document["info"]["version"].removeprefix("v").split(".")[:2])
    return {"version": version, "types": dict(sorted(found.items()))}


def text_of(found: Mapping[str, Any]) -> str:
    """Return the text of the file, one type a line."""
    types = ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in found["types"].items())
    return f'{{"version": {json.dumps(found["version"])}, "types": {{\n{types}\n}}}}\n'


def test_the_fields_are_those_of_the_api_server(cluster: EmbeddedCluster, update_golden: bool) -> None:
    text = text_of(fields(json.loads(cluster.kubectl("get", "--raw", "/openapi/v2"))))
    if update_golden:
        FIELDS.write_text(text, encoding="utf-8")
    assert FIELDS.read_text(encoding="utf-8") == text
