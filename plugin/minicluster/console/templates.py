"""Texts for other systems, made from the templates beside the modules that write them."""

import json
import shlex
from functools import cache
from pathlib import Path
from typing import Any


def rendered(module: str, name: str, /, **values: object) -> str:
    """Return a template with its holes filled. It lies in the folder of a module, which is given by its ``__file__``.

    No value is escaped by itself: each hole names the filter of its language. Raises jinja2.UndefinedError for a hole
    that has no value.
    """
    text: str = _environment(Path(module).parent).get_template(name).render(values)
    return text


@cache
def _environment(folder: Path) -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - 60 ms

    environment = Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - few of the texts are XML
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"quote": shlex.quote, "words": shlex.join, "json": _json, "cell": _cell}
    return environment


def _json(value: object) -> str:
    # jinja2's own `tojson` is for HTML
    return json.dumps(value, ensure_ascii=False)


def _cell(text: str) -> str:
    """Return a text as a cell of a table in Markdown."""
    return " ".join(text.split()).replace("|", r"\|")
