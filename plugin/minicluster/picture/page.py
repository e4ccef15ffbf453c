"""The page of a picture: as a file that needs no network, or as what the server of a live page sends."""

import json
from pathlib import Path
from typing import Any

from minicluster import picture
from minicluster.console.templates import rendered
from minicluster.picture import figures
from minicluster.picture.curves import MOST_RECORDS

HERE = Path(__file__).parent
#: What a file may do: run what is in it, and load nothing
FILE_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
    "base-uri 'none'; form-action 'none'"
)


def as_file(name: str, where: str, data: dict[str, Any]) -> bytes:
    """Return a page with all that it shows, as `Timeline.snapshot` returns that. Raises ToolError without Bokeh."""
    library = figures.script().read_text(encoding="utf-8")
    page = _page(name, _config(name, where, data=data), policy=FILE_POLICY, library=library, script=script())
    return page.encode()


def live(name: str, where: str, *, writable: bool = False) -> bytes:
    """Return the page that the server of a live page sends. Raises ToolError without Bokeh."""
    return _page(name, _config(name, where, live=True, writable=writable), policy="", library="", script="").encode()


def script() -> str:
    """Return the script of the page."""
    return (HERE / "page.js").read_text(encoding="utf-8")


def _page(name: str, config: dict[str, Any], **texts: str) -> str:
    style = (HERE / "page.css").read_text(encoding="utf-8")
    title = f"{name} · minicluster"
    return rendered(__file__, "page.html.j2", title=title, style=style, config=in_html(config), **texts)


def _config(name: str, where: str, **more: Any) -> dict[str, Any]:
    """Return what the script needs to know; ``where`` are the options of the commands that it shows."""
    picture.check()
    return {
        "name": name,
        "where": where,
        "live": False,
        "writable": False,
        "plots": figures.plots(),
        "bars": figures.BAR_FIELDS,
        "colours": figures.COLOURS,
        "hatches": figures.HATCHES,
        "marks": figures.MARKS,
        "height": figures.NODES_PIXELS,
        "samples": MOST_RECORDS,
        **more,
    }


def in_html(value: object) -> str:
    """Return JSON for a script element of HTML, which no text can end: < is escaped, and all that is not ASCII."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
