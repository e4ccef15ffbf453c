"""values.yaml and its schema agree."""

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from support import CHART, DEFAULTS, PACKAGE, Helm

SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
#: Keys that are not values: those for parent charts, keys that have only a message, and an alias.
NOT_VALUES = {"": {"global", "enabled", "apiVersion", "kind", "metadata", "spec"}, "flux": {"leadBroker"}}


def objects(
    schema: dict[str, Any], values: Any, path: str = ""
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield path, schema and values of each object that has fields of its own."""
    if "properties" in schema:
        yield path, schema, values
        for key, part in schema["properties"].items():
            if isinstance(values.get(key), dict):
                yield from objects(part, values[key], f"{path}.{key}".lstrip("."))


@pytest.mark.parametrize(
    ("path", "schema", "values"), list(objects(SCHEMA, DEFAULTS)), ids=lambda x: x if isinstance(x, str) else ""
)
def test_schema_and_values_have_the_same_keys(path: str, schema: dict[str, Any], values: dict[str, Any]) -> None:
    assert set(schema["properties"]) - NOT_VALUES.get(path, set()) == set(values)


#: Parts that Kubernetes defines, of which the schema has what the templates read (render/refusals/kubernetes.py)
KUBERNETES = {"securityContext", "podTemplate", "templateContainers"}


def schemas(schema: Any, name: str = "") -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict) and not ("type" in schema and name in KUBERNETES):
        if "properties" in schema and "type" in schema:
            yield schema
        for key, part in schema.items():
            yield from schemas(part, key)


def test_the_schema_refuses_unknown_keys_in_each_of_its_objects() -> None:
    shared = SCHEMA["properties"]["global"]  # with what is for other charts
    found = [schema for schema in schemas(SCHEMA) if schema is not shared]
    assert len(found) > 8
    assert [schema for schema in found if schema.get("additionalProperties") is not False] == []


def test_every_definition_of_the_schema_is_used() -> None:
    text = json.dumps(SCHEMA)
    assert [name for name in SCHEMA["$defs"] if f'"#/$defs/{name}"' not in text] == []


def test_the_defaults_have_the_types_and_choices_of_the_schema() -> None:
    for _path, schema, values in objects(SCHEMA, DEFAULTS):
        for key, value in values.items():
            part = schema["properties"][key]
            types = part.get("type", [])
            if value is None:
                assert "null" in types, key
            if "enum" in part:
                assert value in part["enum"], key


def test_helm_lint_finds_no_fault_in_the_chart(helm: Helm) -> None:
    out = helm.ok("lint", "--strict", CHART)
    assert "0 chart(s) failed" in out


#: Ends of the names of files.
FILES = (".html", ".py", ".sh", ".json", ".problem", ".purged")
#: What looks like the name of a value in a text of the package.
NO_NAMES = {
    "flux.installRoot": "flux-operator's",
    "flux.resource.journal": "Flux's",
    "groups.get": "of a program",
    "kueue.x": "the begin of Kueue's group",
}


def fields(part: dict[str, Any]) -> dict[str, Any] | None:
    """Return the fields of a value, or of the items of a list; None when they are Kubernetes', or the user's names."""
    if "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        if name in KUBERNETES:
            return None
        part = SCHEMA["$defs"][name]
    return fields(part["items"]) if "items" in part else part.get("properties")


def exists(name: str) -> bool:
    """Tell whether a value of a name, such as `containers[].command`, exists."""
    known, keys = fields(SCHEMA), re.sub(r"\[\w*\]", "", name).split(".")
    for key in keys:
        if known is not None and key not in known:
            return False
        known = fields(known[key]) if known else None
    return True


def test_the_package_names_values_that_exist() -> None:
    objects = "|".join(key for key, part in SCHEMA["properties"].items() if fields(part))
    pattern = re.compile(rf"(?<![\w./$-])(?:{objects})(?:\[\w*\])?(?:\.[a-zA-Z]+(?:\[\w*\])?)+")
    texts = [
        node.value
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    names = {name for text in texts for name in pattern.findall(text) if not name.endswith(FILES)}
    assert len(names) > 50
    assert sorted(name for name in names - NO_NAMES.keys() if not exists(name)) == []
