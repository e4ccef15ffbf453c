"""The differences of two renderings, as a text that a reviewer reads and a test compares.

Each object that differs has a block, and each value in it a path: `+` is new, `!` is another value, `-` is gone. A text
of several lines is a diff without line numbers, in which `!` is a name with another value. Nothing else of the base is
repeated in full, so a change of both renderings leaves the text as it is.

A new object that is much like another of its kind, as a group's Job is like the MiniCluster's, is shown by its
differences from that.
"""

import difflib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

#: Fields that tell the items of a list apart, in the order in which they are tried; mounts can share a name.
IDENTITIES = ("mountPath", "name", "key")
#: What the lines of settings, JSON and TOML begin with that give a value to a name
NAME = re.compile(r'\s*(?:\w+|"\w+") ?(?:=|: )')
#: The number of characters that are shown of a line of the base.
WIDTH = 40


class Dumper(yaml.SafeDumper):
    """Dumps YAML with texts of several lines as blocks."""

    def ignore_aliases(self, _data: Any) -> bool:
        """Write each value in full."""
        return True


def _text(dumper: Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


Dumper.add_representer(str, _text)


def differences(base: Mapping[tuple[str, str], Any], other: Mapping[tuple[str, str], Any]) -> str:
    """Return the differences of other objects, by kind and name, from those of the base."""
    lines: list[str] = []
    for key in sorted(base.keys() | other.keys()):
        title = f"@@ {' '.join(key)}"
        if key not in base:
            lines += _new(title, key, other)
        elif key not in other:
            lines.append(f"{title} (gone)")
        elif found := list(_compare("", base[key], other[key])):
            lines += [title, *found]
    return "".join(f"{line}\n" for line in lines)


def _new(title: str, key: tuple[str, str], objects: Mapping[tuple[str, str], Any]) -> list[str]:
    """Return the lines for a new object; one that is like it has a name that its own begins with."""
    kind, name = key
    whole = _block("+ ", objects[key])
    for like in sorted(one for one in objects if one[0] == kind and name.startswith(f"{one[1]}-")):
        found = list(_compare("", objects[like], objects[key]))
        if len(found) * 3 < len(whole):
            return [f"{title} (new, like {' '.join(like)})", *found]
    return [f"{title} (new)", *whole]


def _compare(path: str, base: Any, other: Any) -> Iterator[str]:
    """Yield the lines for two values of one path."""
    parsed = _json(base), _json(other)
    if isinstance(parsed[0], dict) and isinstance(parsed[1], dict):
        yield from _maps(path, *parsed)
    elif isinstance(base, dict) and isinstance(other, dict):
        yield from _maps(path, base, other)
    elif isinstance(base, list) and isinstance(other, list):
        yield from _lists(path, base, other)
    elif json.dumps(base) != json.dumps(other):
        texts = [value for value in (base, other) if isinstance(value, str) and value.count("\n") > 1]
        yield from _texts(path, *texts) if len(texts) == 2 else _value("!", path, other)


def _json(value: Any) -> Any:
    """Return the map that a text of one line contains as JSON, as Helm writes it; None for anything else."""
    if not isinstance(value, str) or not value.startswith("{"):
        return None
    try:
        found = json.loads(value)
    except ValueError:
        return None
    text = json.dumps(found, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    escaped = re.sub("[<>&]", lambda match: f"\\u{ord(match[0]):04x}", text)
    return found if escaped == value else None


def _maps(path: str, base: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(base.keys() | other.keys()):
        below = f"{path}.{key}".lstrip(".") if re.fullmatch(r"[-\w]+", key) else f"{path}[{json.dumps(key)}]"
        yield from _item(below, base, other, key)


def _lists(path: str, base: Sequence[Any], other: Sequence[Any]) -> Iterator[str]:
    field = next((field for field in IDENTITIES if _tells_apart(field, base) and _tells_apart(field, other)), None)
    if field is None or len(base) == len(other) == 1:  # the only item can have another name
        items = dict(enumerate(base)), dict(enumerate(other))
        for index in sorted(items[0].keys() | items[1].keys()):
            yield from _item(f"{path}[{index}]", *items, index)
        return
    old, new = ({item[field]: item for item in items} for items in (base, other))
    places = dict(_places(list(old), list(new)))
    for name in [*old, *(name for name in new if name not in old)]:
        yield from _item(f"{path}[{field}={name}]{places.get(name, '')}", old, new, name)
    if [name for name in new if name in old] != [name for name in old if name in new]:
        yield f"! {path}: in the order {', '.join(new)}"


def _tells_apart(field: str, items: Sequence[Any]) -> bool:
    """Tell whether all items of a list are maps in which a field has texts of their own."""
    names = [item.get(field) for item in items if isinstance(item, dict)]
    return len(items) == len({name for name in names if isinstance(name, str)})


def _places(base: Sequence[str], other: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the new items that are not at the end, and their position."""
    last = max((index for index, name in enumerate(other) if name in base), default=-1)
    for before, name in itertools.pairwise(["", *other[: last + 1]]):
        if name not in base:
            yield name, f" (after {before})" if before else " (first)"


def _item(path: str, base: Mapping[Any, Any], other: Mapping[Any, Any], key: Any) -> Iterator[str]:
    if key not in base:
        yield from _value("+", path, other[key])
    elif key not in other:
        yield f"- {path}"
    else:
        yield from _compare(path, base[key], other[key])


def _value(mark: str, path: str, value: Any) -> Iterator[str]:
    """Yield the lines of a value; a value of several lines begins below the path."""
    if isinstance(value, dict | list) and value:
        yield f"{mark} {path}:"
        yield from _block(f"{mark}   ", value)
    elif isinstance(value, str) and "\n" in value:
        first, *rest = _block("", value)
        yield f"{mark} {path}: {first}"
        yield from (f"{mark} {line}" for line in rest)
    else:
        yield f"{mark} {path}: {json.dumps(value, ensure_ascii=False)}"


def _block(prefix: str, value: Any) -> list[str]:
    text = yaml.dump(value, Dumper=Dumper, sort_keys=True, allow_unicode=True, width=1000)
    return [f"{prefix}{line}" for line in text.splitlines()]


def _texts(path: str, base: str, other: str) -> Iterator[str]:
    """Yield removed and new lines, and other values; if a line's place is ambiguous, the lines before it too."""
    yield f"! {path}:"
    old, new = (text.splitlines(keepends=True) for text in (base, other))
    shown = [_short(line) for line in old]
    seen = 0  # the number of lines of the base before the place of the last line that was yielded
    for what, start, end, first, last in difflib.SequenceMatcher(None, *_named(old, new), False).get_opcodes():
        if what == "equal":
            for index, (before, line) in enumerate(zip(old[start:end], new[first:last], strict=True), start + 1):
                if line != before:
                    yield f"!   {_ended(line)}"
                    seen = index
            continue
        begin = start
        while begin > seen and (begin == end or shown.count(shown[begin]) > 1):
            begin -= 1
        yield from (f"    {line}" for line in shown[begin:start])
        yield from (f"-   {line}" for line in shown[start:end])
        yield from (f"+   {_ended(line)}" for line in new[first:last])
        seen = end


def _named(*texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines of two texts, of `name = value` the name alone if each text has it once."""
    names = [[match[0] if (match := NAME.match(line)) else line for line in text] for text in texts]
    once = {name for name in names[0] if all(some.count(name) == 1 for some in names)}
    for text, some in zip(texts, names, strict=True):
        yield [name if name in once else line for line, name in zip(text, some, strict=True)]


def _ended(line: str) -> str:
    return line.removesuffix("\n") if line.endswith("\n") else f"{line} (no line break)"


def _short(line: str) -> str:
    text = _ended(line)
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}..."
