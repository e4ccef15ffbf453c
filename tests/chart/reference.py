"""The tables of docs/reference/values.md, from the comments of values.yaml.

A table is between `<!-- fields PREFIX -->` and `<!-- end -->`, and has the fields for which no other matching prefix
of the page is longer.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from descriptions import Comment
from minicluster.console.templates import rendered

MARKED = re.compile(r"(<!-- fields ?(\S*) -->\n).*?(<!-- end -->)", re.DOTALL)
NOTHING = "-"
EMPTY = re.compile(r"(.*)\. (?:Empty|Unset): (.*)")


def default(values: Any, path: str) -> str:
    """Return a field's default as a cell; an empty default gives an empty cell."""
    for key in path.split("."):
        values = values.get(key) if isinstance(values, dict) else None
    if values in (None, "", [], {}):
        return ""
    return f"`{values if isinstance(values, str) else json.dumps(values)}`"


def row(path: str, comment: Comment, values: Any) -> tuple[str, str, str, str]:
    """Return the cells of a field. What its text says of an empty one stands in place of the default."""
    found, text = default(values, path), comment.text
    if not found and (empty := EMPTY.fullmatch(text)):
        text, found = empty.groups()
    return f"`{path}`", found or NOTHING, text, comment.lands or NOTHING


def place(path: str, prefixes: list[str]) -> str:
    """Return the prefix whose table has a field. The empty prefix is that of any field."""
    return max((prefix for prefix in prefixes if re.match(rf"{re.escape(prefix)}(?!\w)", path) or not prefix), key=len)


def written(text: str, comments: Mapping[str, Comment], values: Any) -> str:
    """Return a page with its tables by the current values.yaml. Raises ValueError for a field that has no table."""
    prefixes = [found[2] for found in MARKED.finditer(text)]
    rows = {path: row(path, comment, values) for path, comment in comments.items() if comment.is_field}
    places = {path: place(path, prefixes) for path in rows}

    def fill(match: re.Match[str]) -> str:
        found = [cells for path, cells in rows.items() if places[path] == match[2]]
        return f"{match[1]}\n{rendered(__file__, 'fields.md.j2', rows=found)}\n{match[3]}"

    return MARKED.sub(fill, text)
