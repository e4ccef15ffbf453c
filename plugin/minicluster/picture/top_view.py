"""What `minicluster top` shows: lines of a terminal, drawn from a timeline and from what a person has chosen."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.text import Text

from minicluster.cluster.states import CLUSTER_TONES, JOB_TONES
from minicluster.console.terminal import STYLES
from minicluster.errors import one_line
from minicluster.picture import node_history
from minicluster.picture.job_history import status_of
from minicluster.picture.timeline import Timeline
from minicluster.status.table import duration, left_at, progress

Row = dict[str, Any]
#: The keys by which jobs are sorted, in the order of the key s
SORTS = ("newest", "longest", "state", "name")
BLOCKS = " ▁▂▃▄▅▆▇█"
#: Columns of the labels of curves; seconds that these show
LABEL_WIDTH_COLUMNS, CURVE_SECONDS = 22, 600
#: Columns of a job's id, as most have it, and of its nodes
ID_COLUMNS, NODES_COLUMNS = 12, 14
HELP = "q quit   s sort   ↑ ↓ choose   Enter look into the job   Esc back"


class Chosen(NamedTuple):
    """What a person has chosen."""

    sort: str = SORTS[0]
    place: int = 0  #: of the chosen job in the list
    detail: Sequence[str] | None = None  #: lines about the job that is looked into


def jobs_of(timeline: Timeline, sort: str, now: float) -> list[Row]:
    """Return the jobs in an order; those that are active come first."""
    keys = {
        "newest": lambda job: -(job.get("t_submit") or 0.0),
        "longest": lambda job: -(seconds(job, now) or 0.0),
        "state": status_of,
        "name": lambda job: job.get("name") or "",
    }
    ordered = sorted(timeline.jobs.jobs.values(), key=keys[sort])
    return sorted(ordered, key=lambda job: job.get("state") == "INACTIVE")


def seconds(job: Row, now: float) -> float | None:
    """Return how long a job has run; None before that."""
    return max(0.0, (left_at(job) or now) - job["t_run"]) if job.get("t_run") else None


def spark(values: Sequence[tuple[float, float]], begin: float, end: float, columns: int) -> str:
    """Return a curve of blocks: the last value of each column, by times that ascend.

    >>> spark([(0.0, 1.0), (5.0, 4.0)], 0.0, 10.0, 4)
    '▂▂██'
    """
    bars, place = [], 0
    for column in range(columns):
        until = begin + (end - begin) * (column + 1) / columns
        while place < len(values) and values[place][0] < until:
            place += 1
        bars.append(values[place - 1][1] if place else 0.0)
    most = max(bars, default=0.0) or 1.0
    return "".join(BLOCKS[min(8, int(8 * value / most + (0.999 if value else 0)))] for value in bars)


def screen(timeline: Timeline, chosen: Chosen, width: int, height: int, now: float) -> Text:
    """Return what a terminal of so many columns and lines shows."""
    now = timeline.clock(now)
    head = [*_head(timeline, now), *_curves(timeline, width, now)]
    nodes = [*_nodes(timeline, max(2, height // 5))]
    marks = [*_marks(timeline, 3 if height < 40 else 6)]
    room = height - len(head) - len(nodes) - len(marks) - 2
    body = _detail(chosen.detail, room) if chosen.detail is not None else [*_jobs(timeline, chosen, room, now)]
    lines = [*head, *nodes, *marks, *body][: height - 1]
    lines += [Text() for _ in range(height - 1 - len(lines))]
    text = Text("\n", no_wrap=True).join(_fitted(line, width) for line in (*lines, Text(HELP, "reverse")))
    text.no_wrap = True
    return text


def _fitted(line: Text, width: int) -> Text:
    line.truncate(width, overflow="ellipsis")
    return line


def _line(*parts: str | tuple[str, str]) -> Text:
    line = Text()
    for part in parts:
        text, style = (part, "") if isinstance(part, str) else part
        # the spaces between are ours, the rest may be anybody's
        inner = text.strip(" ")
        begin = len(text) - len(text.lstrip(" "))
        line.append(text[:begin] + one_line(inner) + (" " * (len(text) - begin - len(inner))), style)
    return line


def _head(timeline: Timeline, now: float) -> Iterator[Text]:
    status, jobs = timeline.status, timeline.jobs
    state, why = status.get("state", "…"), status.get("why", "")
    tone = STYLES[CLUSTER_TONES.get(state, "")]
    clock = datetime.fromtimestamp(now, UTC).strftime(
        "as of %m-%d %H:%M:%S UTC" if timeline.is_over else "%H:%M:%S UTC"
    )
    size = "" if timeline.size is None else f"  size {timeline.size}"
    size += f" of at most {status['maxSize']}" if status.get("maxSize") else ""
    yield _line((f"{timeline.name} ", "bold"), (f" {state}", tone), f": {why}" if why else " ", f"{size}  {clock}")
    if timeline.trouble:
        yield _line((timeline.trouble, "red"))
    counts = Counter(map(status_of, jobs.jobs.values()))
    parts = [(f"  {count} {name.lower()}", STYLES[JOB_TONES.get(name, "")]) for name, count in sorted(counts.items())]
    yield _line(("jobs", "bold"), *(parts or [("  none", "")]))


def _curves(timeline: Timeline, width: int, now: float) -> Iterator[Text]:
    begin, columns = now - CURVE_SECONDS, max(10, width - LABEL_WIDTH_COLUMNS)
    kinds = (("wait", 1, "yellow"), ("run", 2, "cyan"), ("cores in use", 3, "green"), ("nodes up", 4, "magenta"))
    for label, place, style in kinds:
        values = [(sample[0], float(sample[place] or 0)) for sample in timeline.samples]
        last = int(values[-1][1]) if values else 0
        yield Text.assemble(f"{label:<13}{last:>7}  ", (spark(values, begin, now, columns), style))
    sizes = [(t, float(size)) for t, size in timeline.sizes]
    yield Text.assemble(f"{'size':<13}{timeline.size or 0:>7}  ", (spark(sizes, begin, now, columns), "blue"))


def _nodes(timeline: Timeline, most: int) -> Iterator[Text]:
    rows = node_history.rows(timeline.nodes, timeline.status, timeline.size)
    busy = Counter(chain(*timeline.jobs.running().values()))
    yield _line(("nodes", "bold"), f"  {len(rows)}: the last {CURVE_SECONDS // 60} minutes are above")
    # those that are not well come first
    for row in sorted(rows, key=lambda row: row["state"] == "up")[:most]:
        tone = "" if row["state"] == "up" else "yellow"
        count = busy[row["rank"]]
        yield _line(f"  {row['name']}", (f"  {row['state']}", tone), f"  {count} jobs {'■' * count}  ", row["reason"])
    if len(rows) > most:
        yield _line(f"  and {len(rows) - most} more")


def _marks(timeline: Timeline, most: int) -> Iterator[Text]:
    marks = sorted(timeline.nodes.marks)[-most:]
    if marks:
        yield _line(("what happened", "bold"))
    for mark in reversed(marks):
        clock = datetime.fromtimestamp(mark.t, UTC).strftime("%H:%M:%S")
        yield _line((f"  {clock}  ", "dim"), mark.text)


def _jobs(timeline: Timeline, chosen: Chosen, room: int, now: float) -> Iterator[Text]:
    ordered = jobs_of(timeline, chosen.sort, now)
    wide = max([ID_COLUMNS, *(cell_len(one_line(str(job.get("id", "")))) for job in ordered)])
    heads = f"{'ID':<{wide}} {'STATE':<10} {'TIME':>7} {'CODE':>4} {'NODES':<{NODES_COLUMNS}} NAME"
    yield Text.assemble((heads, "bold"), f"  by {chosen.sort}")
    first = max(0, min(chosen.place - room // 2, len(ordered) - room + 1))
    for place, job in enumerate(ordered[first : first + max(0, room - 1)], first):
        ran, status = seconds(job, now), status_of(job)
        took = duration(ran) if ran is not None else "-"
        code = "" if job.get("exit_code") is None else str(job["exit_code"])
        nodes = _fitted(Text(one_line(job.get("nodes") or "-")), NODES_COLUMNS).plain
        style = "reverse" if place == chosen.place else ""
        yield Text.assemble(
            (f"{one_line(str(job.get('id', ''))):<{wide}} ", style),
            (f"{status:<10}", STYLES[JOB_TONES.get(status, "")]),
            f" {took:>7} {code:>4} {nodes:<{NODES_COLUMNS}} ",
            " ".join(filter(None, (one_line(job.get("name") or "-"), progress(job, now)))),
        )


def _detail(lines: Sequence[str], room: int) -> list[Text]:
    """Return the lines about a job; of many the last ones."""
    kept = [*lines[:3], *lines[3:][-max(0, room - 3) :]] if len(lines) > room else lines
    return [_line(line) for line in kept]
