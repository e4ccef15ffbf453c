"""Values as strangers may see them: a text that may be anything, and so a password, is hidden."""

from collections.abc import Iterator, Mapping
from typing import Any

from minicluster.render import schema

HIDDEN_TEXT = "(hidden)"
#: Formats of texts that may be anything. All others are names, numbers and paths
FREE_FORMATS = ("text", "line", "filled-line", "words")


def public(values: Any) -> Any:
    """Return values in which each text that the schema leaves free is hidden, as in variables and commands."""
    return _public(values, schema.whole())


def _public(value: Any, rules: Mapping[str, Any]) -> Any:
    rules = schema.followed(rules)
    if isinstance(value, dict):
        known, others = rules.get("properties", {}), rules.get("additionalProperties")
        others = others if isinstance(others, dict) else {}
        return {key: _public(item, known.get(key, others)) for key, item in value.items()}
    if isinstance(value, list):
        items = rules.get("items")
        return [_public(item, items if isinstance(items, dict) else {}) for item in value]
    is_name = "enum" in rules or rules.get("format", "text") not in FREE_FORMATS
    return HIDDEN_TEXT if isinstance(value, str) and value and not is_name else value


def hidden_texts(values: Any, shown: Any) -> Iterator[str]:
    """Yield the texts that are hidden in what ``public`` made of values."""
    if isinstance(values, dict):
        for key, item in values.items():
            yield from hidden_texts(item, shown[key])
    elif isinstance(values, list):
        for item, other in zip(values, shown, strict=True):
            yield from hidden_texts(item, other)
    elif values != shown:
        yield values
