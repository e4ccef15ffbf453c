"""YAML as Helm and Kubernetes read it, with Go's libraries (sigs.k8s.io/yaml, go-yaml v2 and v3).

Readers differ in what they take for a number, a bool or a line break. So a string is written in quotes unless it is a
string to all of them, and a scalar is read as sigs.k8s.io/yaml reads it.
"""

import base64
import binascii
import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import groupby, starmap
from typing import Any

import yaml

from minicluster.documents import limits

_TAG = "tag:yaml.org,2002:"
#: The greatest line width that libyaml accepts, so that it breaks no line.
_WIDTH_CHARACTERS = 2**31 - 1


# Write --------------------------------------------------------------------------------------------------------


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes strings of several lines as blocks, and others in quotes where a reader could mistake them."""

    def ignore_aliases(self, _data: Any) -> bool:
        """Write no aliases: not all readers take many of them."""
        return True


#: A string that begins so is a string to all readers: a number, date, merge key, null or indicator begins otherwise.
_PLAIN = re.compile(r"[A-Za-z/]")
#: Except these words, in upper or lower case.
_WORDS = {"y", "yes", "n", "no", "on", "off", "true", "false", "null", "nan", "inf"}
#: Characters that break lines to some readers and not to others, and the byte order mark.
_BREAKS = re.compile("[\r\x85\u2028\u2029\ufeff]")


def _style(text: str) -> str | None:
    """Return the style of a string; libyaml uses double quotes where the style can't hold it."""
    if _BREAKS.search(text):
        return '"'
    if "\n" in text:
        return "|"
    return None if _PLAIN.match(text) and text.lower() not in _WORDS else "'"


_Dumper.add_representer(str, lambda dumper, text: dumper.represent_scalar(f"{_TAG}str", text, style=_style(text)))


#: The YAML of a longer text is cached: many manifests of a stream have the same programs.
_CACHED_CHARACTERS = 200


def dump_manifest(manifest: Mapping[str, Any]) -> bytes:
    """Return a manifest as YAML, as ``dump`` does, but with a cache for the long texts in ``data``.

    ``data``, if there is any, is its last field.
    """
    data = manifest.get("data")
    if not data:
        return dump(manifest)
    parts = [dump({key: value for key, value in manifest.items() if key != "data"}), _DATA]
    for is_long, items in groupby(data.items(), lambda item: len(item[1]) > _CACHED_CHARACTERS):
        if is_long:
            parts += starmap(_long_text, items)
        else:
            parts.append(_data(dict(items)))
    return b"".join(parts)


_DATA = b"data:\n"


def _data(texts: Mapping[str, str]) -> bytes:
    """Return the lines of texts in a manifest's ``data``."""
    return dump({"data": texts}, marker=False).removeprefix(_DATA)


@lru_cache(maxsize=256)
def _long_text(name: str, text: str) -> bytes:
    return _data({name: text})


def dump(document: Any, marker: bool = True) -> bytes:
    """Return a document as YAML, with its marker."""
    text: bytes = yaml.dump(
        document,
        Dumper=_Dumper,
        explicit_start=marker,
        sort_keys=False,
        encoding="utf-8",
        allow_unicode=True,
        width=_WIDTH_CHARACTERS,
    )
    return text


# Read ---------------------------------------------------------------------------------------------------------


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads plain scalars as sigs.k8s.io/yaml does: `08` and `1e3` are numbers, a date is a string."""


#: Tag of a scalar that may be a number; `_number` decides.
_NUMBER = "!number"
Loader.yaml_implicit_resolvers = {}
for _kind, _pattern, _first in (
    (f"{_TAG}null", r"(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    (
        f"{_TAG}bool",
        r"(?:[yYnN]|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF|true|True|TRUE|false|False|FALSE)$",
        list("yYnNoOtTfF"),
    ),
    (f"{_TAG}merge", r"<<$", ["<"]),
    (_NUMBER, r"[-+.0-9][-+.0-9a-zA-Z_]*$", list("-+.0123456789")),
):
    Loader.add_implicit_resolver(_kind, re.compile(_pattern), _first)


def _number(loader: Any, node: Any) -> int | float | str:
    """Return the number that a plain scalar is, else its text. Raises YAMLError for a number that JSON can't hold."""
    text: str = loader.construct_scalar(node)
    if re.fullmatch(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", text):
        raise yaml.constructor.ConstructorError(None, None, f"{text} can't be a value", node.start_mark)
    plain = text.replace("_", "")
    for base, pattern in ((8, "[-+]?0[0-7]+"), (10, "[-+]?(0|[1-9][0-9]*)"), (0, "[-+]?0[xXoObB][0-9a-fA-F]+")):
        if re.fullmatch(pattern, plain):
            try:
                whole = int(plain, base)
            except ValueError:
                return text
            if -(2**63) <= whole < 2**64:
                return whole
    if not re.fullmatch(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", plain):
        return text
    value = float(plain)
    if math.isinf(value):
        return text
    # Go turns YAML into JSON, which has one kind of number
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _tagged_number(loader: Any, node: Any) -> int | float:
    value = _number(loader, node)
    if isinstance(value, str):
        raise yaml.constructor.ConstructorError(None, None, f"{value!r} is not a number", node.start_mark)
    return value


def _binary(loader: Any, node: Any) -> str:
    try:
        return base64.b64decode("".join(loader.construct_scalar(node).split()), validate=True).decode(errors="replace")
    except (binascii.Error, ValueError):
        raise yaml.constructor.ConstructorError(None, None, "!!binary is not base64", node.start_mark) from None


def _bool(loader: Any, node: Any) -> bool:
    return loader.construct_scalar(node).lower() in ("y", "yes", "on", "true")


Loader.add_constructor(_NUMBER, _number)
for _kind, _constructor in {
    "bool": _bool,
    "int": _tagged_number,
    "float": _tagged_number,
    "binary": _binary,
    "timestamp": yaml.SafeLoader.construct_scalar,
    "merge": yaml.SafeLoader.construct_scalar,
    "set": yaml.SafeLoader.construct_yaml_map,
    "omap": yaml.SafeLoader.construct_yaml_seq,
    "pairs": yaml.SafeLoader.construct_yaml_seq,
}.items():
    Loader.add_constructor(_TAG + _kind, _constructor)


class DuplicateKeyError(yaml.MarkedYAMLError):
    """A map has a key twice. Most readers would drop the first one without a word."""

    def __init__(self, key: str, *lines: int) -> None:
        where = f"in lines {min(lines)} and {max(lines)}" if len(set(lines)) > 1 else f"in line {lines[0]}"
        super().__init__(problem=f"has the key {key} twice, {where}: keep one of them")


class _UniqueLoader(Loader):
    """Refuses a map with a key twice. A key beside the same one of a merge (`<<`) overrides that, and is none."""

    def flatten_mapping(self, node: Any) -> None:
        """Check a map before the first time that the maps which it merges are put into it."""
        seen: dict[str, int] = {}
        for key, _ in () if hasattr(node, "is_unique") else node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != f"{_TAG}merge":
                line = key.start_mark.line + 1
                if key.value in seen:
                    raise DuplicateKeyError(key.value, seen[key.value], line)
                seen[key.value] = line
        node.is_unique = True
        super().flatten_mapping(node)


def load(data: bytes | str, *, duplicates: bool = False) -> Any:
    """Return the only document of a stream, None when it is empty. Raises YAMLError, also for several documents.

    With ``duplicates`` the last one of equal keys counts, for documents that are not ours to judge.
    """
    documents = list(load_all(data, duplicates=duplicates))
    if len(documents) > 1:
        raise yaml.MarkedYAMLError(problem="there are several documents, where one is expected")
    return documents[0] if documents else None


def load_all(data: bytes | str, *, duplicates: bool = False) -> Iterator[Any]:
    """Yield the documents of a stream. Raises YAMLError; DuplicateKeyError unless ``duplicates`` are allowed."""
    try:
        limits.check(data, Loader)
        yield from yaml.load_all(data, Loader=Loader if duplicates else _UniqueLoader)
    except UnicodeEncodeError:
        raise yaml.MarkedYAMLError(problem="it has half of a surrogate pair") from None


def are_maps(data: bytes) -> Iterator[bool]:
    """Yield for each document of a stream whether it is a map, or empty. Raises YAMLError at what can't be read."""
    begins = False
    for event in limits.checked(data, Loader):
        if begins:
            is_empty = isinstance(event, yaml.ScalarEvent) and event.value in ("", "~", "null", "Null", "NULL")
            yield is_empty or isinstance(event, yaml.MappingStartEvent)
        begins = isinstance(event, yaml.DocumentStartEvent)


def problem(error: yaml.YAMLError) -> str:
    """Return what is wrong with a text, in words that follow its name; with the line where it is known."""
    if isinstance(error, DuplicateKeyError):
        return str(error.problem)
    mark = getattr(error, "problem_mark", None)
    where = f" at line {mark.line + 1}" if mark else ""
    return f"is not YAML: {getattr(error, 'problem', None) or 'it cannot be read'}{where}"
