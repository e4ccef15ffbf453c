"""What `-o json` prints, as JSON Schemas: the files in schemas/, and the keys in the help of a command."""

import json
import textwrap
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

#: A key may be added to these. One that goes, or means something else, makes another folder
SCHEMAS = Path(__file__).parent / "schemas" / "v1"
#: Columns of the help
HELP_COLUMNS = 116


@cache
def schema(command: str) -> dict[str, Any]:
    """Return the JSON Schema of what a command prints, or of each line or item where these are many."""
    read: dict[str, Any] = json.loads((SCHEMAS / f"{command}.json").read_text(encoding="utf-8"))
    return read


def in_words(command: str, above: str = "Keys of the JSON:") -> str:
    """Return a paragraph of a command's help, as click leaves it, with a line for each key."""
    keys = schema(command)["properties"]
    columns = max(map(len, keys)) + 4
    lines = [
        textwrap.fill(
            f"  {name}".ljust(columns) + _about(each),
            HELP_COLUMNS,
            subsequent_indent=" " * columns,
            break_long_words=False,
        )
        for name, each in keys.items()
    ]
    return "\n".join(["\b", above, *lines])


def _about(key: Mapping[str, Any]) -> str:
    return ": ".join(filter(None, [_shape(key), "; ".join(filter(None, [_values(key), key.get("description", "")]))]))


def _values(key: Mapping[str, Any]) -> str:
    *values, last = key.get("enum", [""])
    return f"{', '.join(values)} or {last}" if values else last


def _shape(key: Mapping[str, Any]) -> str:
    """Return the keys of an object, such as {min, max}; "" for what has none."""
    if "items" in key:
        inner = _shape(key["items"])
        return f"[{inner}]" if inner else ""
    if not key.get("properties"):
        return ""
    inside = (f"{name}: {shape}" if (shape := _shape(each)) else name for name, each in key["properties"].items())
    return f"{{{', '.join(inside)}}}"
