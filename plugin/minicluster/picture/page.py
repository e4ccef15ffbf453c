"""The page of a picture: as a file that needs no network, or as what the server of a live page sends.

A file shows a MiniCluster as it is now, or the records of its jobs.
"""

import json
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from minicluster.cluster.find import LiveCluster
from minicluster.cluster.reasons import with_reasons
from minicluster.cluster.without_flux import state_without_flux
from minicluster.console import lines, streams
from minicluster.console.templates import rendered
from minicluster.console.terminal import ok
from minicluster.kube.port import KubePort
from minicluster.lead import ask
from minicluster.lead.program import BOOT
from minicluster.picture import figures
from minicluster.picture.feed import Reader, described, sizes
from minicluster.picture.job_history import MOST_RECORDS
from minicluster.picture.timeline import Timeline
from minicluster.status.lookup import find, refusals
from minicluster.status.reported import ASK, find_jobs

HERE = Path(__file__).parent
#: What a file may do: run what is in it, and load nothing
FILE_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
    "base-uri 'none'; form-action 'none'"
)


def as_file(name: str, where: str, data: dict[str, Any]) -> bytes:
    """Return a page with all that it shows, as `Timeline.snapshot` returns that."""
    library = figures.script().read_text(encoding="utf-8")
    return _page(name, _config(name, where, data=data), policy=FILE_POLICY, library=library, script=script())


def live(name: str, where: str, *, writable: bool) -> bytes:
    """Return the page that the server of a live page sends."""
    return _page(name, _config(name, where, live=True, writable=writable), policy="", library="", script="")


def script() -> str:
    """Return the script of the page."""
    return (HERE / "page.js").read_text(encoding="utf-8")


def _page(name: str, config: dict[str, Any], **texts: str) -> bytes:
    style = (HERE / "page.css").read_text(encoding="utf-8")
    title = f"{name} · minicluster"
    return rendered(__file__, "page.html.j2", title=title, style=style, config=in_html(config), **texts).encode()


def _config(name: str, where: str, **more: Any) -> dict[str, Any]:
    """Return what the script needs to know; ``where`` are the options of the commands that it shows."""
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


def write(path: Path, timeline: Timeline, where: str, say: streams.Say) -> None:
    """Write a picture as a page. Raises OutputError."""
    shown = timeline.snapshot(time.time())
    streams.write_file(path, as_file(timeline.name, where, shown), 0o644)
    say(ok(f"wrote {path} with {len(shown['jobs'])} jobs"))


def of_records(name: str, rows: Iterable[Mapping[str, Any]], most: int) -> Timeline:
    """Return the picture that records of jobs give."""
    timeline = Timeline(name, most)
    timeline.is_record = True
    timeline.take_past([*rows], time.time())
    return timeline


def of_cluster(kube: KubePort, name: str, most: int, say: streams.Say) -> Timeline:
    """Return the picture of a MiniCluster: from its lead, or after the end from the report in the lead's log.

    Raises StateError if its jobs can't be known, StatusError.
    """
    with refusals():
        cluster = with_reasons(kube, find(kube, name))
    timeline, status = Timeline(cluster.name, most), ""
    why = ""
    if state_without_flux(cluster, datetime.now(UTC)) is None:
        try:
            with refusals():
                status = _ask(kube, cluster, most, timeline)
        except ask.SilentError as error:
            why = error.reason
    if not status:
        timeline.take_past(find_jobs(kube, name, say, most).rows, time.time())
    timeline.take_status(described(cluster, status, why, timeline.ahead_seconds))
    if cluster.job:
        timeline.take_size(cluster.job.size, timeline.clock(time.time()), sizes(kube, cluster))
    return timeline


def _ask(kube: KubePort, cluster: LiveCluster, most: int, timeline: Timeline) -> str:
    """Let the lead tell what it knows; return its status. Raises what `ask` raises."""
    reader = Reader(timeline)
    text = ask.ask(kube, cluster.pods[0], "picture", ("/bin/sh", "-c", ASK, BOOT, str(most), "once"))
    for line in lines.split(text):
        reader.take(json.loads(line), time.time())
    return reader.status
