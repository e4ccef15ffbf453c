"""The comments of values.yaml, as the descriptions that editors show from values.schema.json.

A comment `# -- TEXT` describes the value below it, a plain comment the section below it, and `# PATH -- TEXT` a field
that values.yaml has not. Comment lines that follow go on with the text. What follows an arrow, behind the value or at
the end of the text, says where the field lands.
"""

import copy
import re
from typing import Any, NamedTuple

ENTRY = re.compile(r"(?:([\w.\[\]]+) )?-- (.*)")
KEY = re.compile(r"( *)(\w+):(?:.*  # (→ .*))?")


class Comment(NamedTuple):
    """The description of a field, or of a section of fields."""

    text: str
    lands: str
    is_field: bool


def comments(text: str) -> dict[str, Comment]:
    """Return the comments of values.yaml on fields and sections, by path."""
    found: dict[str, list[str]] = {}
    fields: set[str] = set()
    keys: list[str] = []
    above: list[str] = []  # describes the key below
    is_field = False  # whether `above` is of a field
    open_: list[str] | None = None  # goes on with the next line
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("#"):
            comment = stripped.removeprefix("#").strip()
            entry = ENTRY.fullmatch(comment)
            if entry or open_ is None:
                open_ = [entry[2] if entry else comment]
                if entry and entry[1]:
                    found[entry[1]] = open_
                    fields.add(entry[1])
                else:
                    above, is_field = open_, bool(entry)
            else:
                open_.append(comment)
        elif key := KEY.match(line):
            keys = [*keys[: len(key[1]) // 2], key[2]]
            if above:
                found[".".join(keys)] = [*above, key[3] or ""]
                fields |= {".".join(keys)} if is_field else set()
            above, open_ = [], None
        else:
            above, open_ = [], None
    return {path: _comment(" ".join(lines), path in fields) for path, lines in found.items()}


def _comment(text: str, is_field: bool) -> Comment:
    said, _, lands = text.partition(" → ")
    return Comment(said.strip(), lands.strip(), is_field)


def described(schema: dict[str, Any], texts: dict[str, str]) -> dict[str, Any]:
    """Return a schema whose fields have these descriptions. Raises KeyError for a path that is no field."""
    schema = copy.deepcopy(schema)
    unused = set(texts)

    def visit(part: Any, path: str) -> None:
        reference = part.get("$ref", "").rpartition("/")[2]
        part = schema["$defs"][reference] if reference else part
        for name, field in part.get("properties", {}).items():
            below = f"{path}.{name}".lstrip(".")
            if below in texts:
                rest = {key: value for key, value in field.items() if key != "description"}
                field.clear()
                field |= {"description": texts[below], **rest}
                unused.discard(below)
            visit(field, below)
        if "items" in part:
            visit(part["items"], f"{path}[]")
        for items in (*part.get("patternProperties", {}).values(), part.get("additionalProperties")):
            if isinstance(items, dict):
                visit(items, f"{path}.NAME")

    visit(schema, "")
    if unused:
        raise KeyError(f"values.yaml describes {', '.join(sorted(unused))}, which the schema has not")
    return schema


def undescribed(part: Any, path: str = "") -> list[str]:
    """Return the fields of a schema without a description, except those that exist for their message alone."""
    if not isinstance(part, dict):
        return []
    # a field may itself have the name `properties`
    fields = part.get("properties", {})
    bare = [f"{path}/{name}" for name, field in fields.items() if not {"description", "const"} & field.keys()]
    below = {**{key: rest for key, rest in part.items() if key != "properties"}, **fields}
    return bare + [found for key, one in below.items() for found in undescribed(one, f"{path}/{key}")]
