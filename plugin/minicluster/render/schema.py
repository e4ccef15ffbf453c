"""The chart's values.schema.json, and its errors as sentences."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from minicluster.errors import cut
from minicluster.render import formats

#: The field whose value no error may show.
HIDDEN = "flux.curveCert"
SCHEMA = Path(__file__).parent.parent / "chart" / "values.schema.json"


@cache
def whole() -> dict[str, Any]:
    """Return the chart's schema, which nobody may change."""
    return dict(json.loads(SCHEMA.read_bytes()))


def followed(rules: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the rules of a part of the schema, those of its `$ref` if it has one."""
    name = str(rules.get("$ref", "")).rpartition("/")[2]
    return whole()["$defs"][name] if name else rules


def validator(schema: dict[str, Any]) -> Any:
    """Return the validator of a schema, which checks our formats."""
    from jsonschema_rs import Draft202012Validator  # noqa: PLC0415 - 10 ms

    checks: dict[str, Callable[[str], bool]] = {name: partial(formats.has, name) for name in formats.FORMATS}
    return Draft202012Validator(schema, formats=checks, validate_formats=True)


@cache
def _validator() -> Any:
    """Return the validator of the chart's schema, one for all documents of a stream."""
    return validator(whole())


def problems(spec: Any) -> Iterator[str]:
    """Yield a sentence for each error of a spec, shallow before deep."""
    for error in sorted(_validator().iter_errors(spec), key=lambda e: (len(e.instance_path), str(e.instance_path))):
        *place, keyword = error.schema_path
        yield _sentence(error.instance_path, _at(spec, error.instance_path), keyword, _at(whole(), place))


def _at(document: Any, path: Iterable[str | int]) -> Any:
    """Return the value at a path."""
    for key in path:
        document = document[key]
    return document


#: The most characters of a word that is too short to look for in the known names.
SHORT_CHARACTERS = 3
#: Names that people know from Kubernetes, and the fields that they mean.
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
#: Fields of flux-operator's older API, and where they are here.
FORMER = {"fluxLogLevel": "flux.logLevel", "fluxOptionFlags": "flux.optionFlags"}


def _meant(unknown: str, known: Iterable[str], at_top: bool) -> str | None:
    """Return the field that an unknown one is likely meant for; None when no name is near."""
    if unknown in FORMER:
        return FORMER[unknown]
    if unknown in BROUGHT and BROUGHT[unknown] in known:
        return BROUGHT[unknown]
    parts = {
        "containers[0]": whole()["$defs"]["container"],
        "pod": whole()["$defs"]["pod"],
        **{name: part for name, part in whole()["properties"].items() if part.get("type") == "object"},
    }
    for name in (unknown, BROUGHT.get(unknown)) if at_top else ():
        for place, part in parts.items():
            if name in part.get("properties", {}):
                return f"{place}.{name}"
    names = {name.lower(): name for name in known}
    import difflib  # noqa: PLC0415 - a millisecond that only errors need

    near = difflib.get_close_matches(unknown.lower(), names, 1)
    near += [name for name in names if len(unknown) > SHORT_CHARACTERS and unknown.lower() in name]
    return names[near[0]] if near else None


def _unknown(path: str, unknown: str, rules: Mapping[str, Any]) -> str:
    """Return the sentence about a field that is none."""
    meant = _meant(unknown, rules.get("properties", {}), at_top=not path)
    where = f"{path}.{unknown}" if path else unknown
    return f"{where} is not a field" + (f"; did you mean {meant}?" if meant else "")


#: What Helm says of a value that the schema refuses
HELM_SAYS = re.compile(r"- at '(?P<pointer>[^\n]*?)': (?P<what>[^\n]*)")
HELM_UNKNOWN = re.compile(r"additional properties '(?P<name>[^\n]*?)'(, '[^\n]*')* not allowed")


def of_helm(said: str) -> str:
    """Return the first error of the schema in what Helm says, shallow before deep; "" for none."""
    told = ((match["pointer"], match["what"]) for match in HELM_SAYS.finditer(said))
    # an error with others below it says nothing
    faults = [(pointer.split("/")[1:], what) for pointer, what in told if what != "validation failed"]
    if not faults:
        return ""
    # a field that is misspelt may be why another one is missing
    keys, what = min(faults, key=lambda each: (len(each[0]), not HELM_UNKNOWN.fullmatch(each[1]), each[0]))
    path = "".join(f"[{key}]" if key.isdecimal() else f".{key}" for key in keys).lstrip(".")
    unknown = HELM_UNKNOWN.fullmatch(what)
    return _unknown(path, unknown["name"], _rules_at(keys)) if unknown else f"{path or 'the spec'}: {what}"


def _rules_at(keys: Iterable[str]) -> Mapping[str, Any]:
    """Return the part of the schema about a value."""
    rules: Mapping[str, Any] = whole()
    for key in keys:
        inner = rules.get("items") or rules.get("properties", {}).get(key) or rules.get("additionalProperties")
        rules = followed(inner) if isinstance(inner, Mapping) else {}
    return rules


def _sentence(place: list[str | int], value: Any, keyword: str, rules: Mapping[str, Any]) -> str:
    """Return a line that says which value is wrong, and what would be right. The value breaks ``rules[keyword]``."""
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in place).lstrip(".")
    if keyword == "additionalProperties":
        return _unknown(path, next(key for key in value if key not in rules.get("properties", {})), rules)
    if keyword == "const":
        return f"{path} must be {rules[keyword]}"
    if keyword == "format" and isinstance(value, dict):
        name = next(key for key in value if not formats.has(rules[keyword], key))
        return f"{path}: the name {shown(name)} must {formats.want(rules[keyword], name)}"
    if re.fullmatch(re.escape(HIDDEN) + r"([.\[].*)?", path, re.DOTALL):
        return f"{path} is wrong: {_want(value, keyword, rules)}"
    return f"{path or 'the spec'} is {shown(value)}: {_want(value, keyword, rules)}"


def _want(value: Any, keyword: str, rules: Mapping[str, Any]) -> str:  # noqa: PLR0911 - a table
    rule = rules[keyword]
    match keyword:
        case "type":
            return f"must be {' or '.join(t for t in ([rule] if isinstance(rule, str) else rule) if t != 'null')}"
        case "enum":
            return f"must be one of {', '.join(str(choice) or '(empty)' for choice in rule)}"
        case "minimum":
            return f"must be at least {rule}"
        case "maximum":
            return f"must be at most {rule}"
        case "minLength":
            return "must not be empty"
        case "maxLength":
            return f"must be at most {rule} characters"
        case "minItems" | "maxItems":
            return f"must have at {keyword[:3].replace('min', 'least').replace('max', 'most')} {rule} item"
        case "uniqueItems":
            return "must not have an item twice"
        case "required":
            return f"needs {' and '.join(key for key in rule if key not in value)}"
        case "format":
            return f"must {formats.want(rule, value)}"
    return f"breaks the rule {keyword}: {shown(rule)}"


def shown(value: Any) -> str:
    """Return a value for a message: as JSON, with invisible characters escaped, and cut if it is long."""
    text = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in json.dumps(value, ensure_ascii=False))
    return cut(text, 60)
