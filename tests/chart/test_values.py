"""values.yaml and its schema agree."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from support import CHART, Helm

VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
#: Keys that are not values: Helm's `global`, keys that have only a message, and an alias.
NOT_VALUES = {"": {"global", "apiVersion", "kind", "metadata", "spec"}, "flux": {"leadBroker"}}


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
    ("path", "schema", "values"), list(objects(SCHEMA, VALUES)), ids=lambda x: x if isinstance(x, str) else ""
)
def test_schema_and_values_have_the_same_keys(path: str, schema: dict[str, Any], values: dict[str, Any]) -> None:
    assert set(schema["properties"]) - NOT_VALUES.get(path, set()) == set(values)


def schemas(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if "properties" in schema and "type" in schema:
            yield schema
        for part in schema.values():
            yield from schemas(part)


def test_the_schema_refuses_unknown_keys_in_each_of_its_objects() -> None:
    found = list(schemas(SCHEMA))
    assert len(found) > 8
    assert [schema for schema in found if schema.get("additionalProperties") is not False] == []


def test_every_definition_of_the_schema_is_used() -> None:
    text = json.dumps(SCHEMA)
    assert [name for name in SCHEMA["$defs"] if f'"#/$defs/{name}"' not in text] == []


def test_the_defaults_have_the_types_and_choices_of_the_schema() -> None:
    for _path, schema, values in objects(SCHEMA, VALUES):
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
