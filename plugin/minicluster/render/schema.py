"""The chart's values.schema.json, and its errors as sentences."""

import difflib
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from minicluster.render.quantity import WANTED

#: The field whose value no error may show.
HIDDEN = "flux.curveCert"
SCHEMA = Path(__file__).parent.parent / "chart" / "values.schema.json"


@cache
def _validator() -> Any:
    """Return the validator of the schema, one for all documents of a stream."""
    from jsonschema import Draft202012Validator, ValidationError, validators  # noqa: PLC0415 - 50 ms

    def pattern(_validator: Any, expression: str, text: Any, _schema: Any) -> Iterator[Any]:
        # Python's $ also matches before a last newline; that of JSON Schema, and of Helm, doesn't
        if isinstance(text, str) and not re.search(re.sub(r"\$$", r"\\Z", expression), text):
            yield ValidationError(f"{text!r} does not match {expression!r}")

    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    extend: Any = validators.extend
    return extend(Draft202012Validator, {"pattern": pattern})(schema)


def problems(spec: Any) -> Iterator[str]:
    """Yield a sentence for each error of a spec, shallow before deep."""
    validator = _validator()
    for error in sorted(validator.iter_errors(spec), key=lambda e: (len(e.absolute_path), str(e.absolute_path))):
        yield _sentence(error, validator.schema)


#: A word of so few characters is part of too many others.
SHORT = 3
#: Names that people know from elsewhere, and the fields that they mean.
BROUGHT = {
    "env": "environment",
    "volumeMounts": "volumes",
    "args": "command",
    "replicas": "size",
    "parallelism": "size",
    "completions": "size",
    "nodes": "size",
    "name": "nameOverride",
}


def _meant(unknown: str, known: Iterable[str], at_top: bool, schema: Any) -> str | None:
    """Return the field that an unknown one is likely meant for; None when no name is near."""
    if unknown in BROUGHT and BROUGHT[unknown] in known:
        return BROUGHT[unknown]
    parts = {
        "containers[0]": schema["$defs"]["container"],
        **{name: part for name, part in schema["properties"].items() if part.get("type") == "object"},
    }
    for name in (unknown, BROUGHT.get(unknown)) if at_top else ():
        for place, part in parts.items():
            if name in part.get("properties", {}):
                return f"{place}.{name}"
    names = {name.lower(): name for name in known}
    near = difflib.get_close_matches(unknown.lower(), names, 1)
    near += [name for name in names if len(unknown) > SHORT and unknown.lower() in name]
    return names[near[0]] if near else None


def _sentence(error: Any, schema: Any) -> str:
    """Return in one line which value is wrong, and what would be right."""
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path).lstrip(".")
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        unknown = next(key for key in error.instance if key not in known)
        meant = _meant(unknown, known, not path, schema)
        where = f"{path}.{unknown}" if path else unknown
        return f"{where} is not a field" + (f"; did you mean {meant}?" if meant else "")
    if error.validator == "const":
        return f"{path} must be {error.validator_value}"
    if re.fullmatch(re.escape(HIDDEN) + r"([.\[].*)?", path, re.DOTALL):
        return f"{path} is wrong: {_want(error)}"
    return f"{path or 'the spec'} is {shown(error.instance)}: {_want(error)}"


def _want(error: Any) -> str:  # noqa: PLR0911 - a table
    rule = error.validator_value
    match error.validator:
        case "type":
            return f"must be {' or '.join(t for t in ([rule] if isinstance(rule, str) else rule) if t != 'null')}"
        case "enum":
            return f"must be one of {', '.join(str(value) or '(empty)' for value in rule)}"
        case "minimum":
            return f"must be at least {rule}"
        case "maximum":
            return f"must be at most {rule}"
        case "minLength":
            return "must not be empty"
        case "maxLength":
            return f"must be at most {rule} characters"
        case "minItems" | "maxItems":
            return f"must have at {error.validator[:3].replace('min', 'least').replace('max', 'most')} {rule} item"
        case "required":
            return f"needs {' and '.join(key for key in rule if key not in error.instance)}"
        case "anyOf":
            return "must be a string or a list of strings without control characters"
        case "pattern" if error.schema.get("minimum") == 0:
            return f"must be {WANTED}"
        case "pattern" if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]", error.instance):
            return "control characters are not allowed"
        case "pattern":
            return f"must match {rule}"
    return str(error.message)


def shown(value: Any) -> str:
    """Return a value as a message shows it: as JSON, the beginning of a long one."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
