"""The table that ``minicluster status`` prints for people, from its document."""

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from minicluster.cluster.states import CLUSTER_TONES
from minicluster.console.messages import counted, some
from minicluster.console.terminal import STYLES, UNBROKEN, Tone, drawn, unbroken
from minicluster.flux import parse_idset, to_idset

#: Columns of the labels, and of the whole table
LABEL_COLUMNS, WIDTH_COLUMNS = 13, 80
#: Characters of a bar
BAR_CHARACTERS = 20
#: The most names of jobs in a row of the waiting ones
MOST_JOBS = 3


class Row(NamedTuple):
    """A label, the text beside it, and the tone of that."""

    label: str
    text: str
    tone: Tone = ""
    is_fixed: bool = False  #: whether the text stays on one line


def table(report: Mapping[str, Any], width: int = 0) -> str:
    """Return a document as a text for people; in colours, and fitted, for a terminal of a ``width``."""
    if width:
        return _coloured(rows_of(report), width)
    return "".join(f"{_plain(row, WIDTH_COLUMNS, is_piped=True)}\n" for row in rows_of(report))


def rows_of(report: Mapping[str, Any]) -> Iterator[Row]:
    """Yield what is shown of a document."""
    version = f", Flux {report['flux']}" if report["flux"] else ""
    yield Row(
        "MiniCluster", f"{report['name']}, namespace {report['namespace']}, age {duration(report['age'])}{version}"
    )
    yield Row(
        "State", ": ".join(filter(None, [report["state"], report["why"]])), CLUSTER_TONES.get(report["state"], "")
    )
    yield Row("Size", _size(report))
    yield from _failures(**report["failures"] or {"pods": 0, "most": 0, "groups": {}})
    if report["nodes"]:
        yield from _flux(report)
    else:
        yield from _reasons("Pods", report["pods"], "waits")
        yield from _reasons("Containers", _named(report["containers"]), "wrong")
    yield from (Row("Problem", problem, "wrong") for problem in report["problems"] or ())
    if report["longestWait"]:
        yield Row("Longest wait", duration(report["longestWait"]))


def _failures(pods: int, most: int, groups: Mapping[str, int]) -> Iterator[Row]:
    named = {"": pods, **{f" of group {name}": count for name, count in groups.items()}}
    counts = [f"{counted(count, 'pod')}{of}" for of, count in named.items() if count]
    if counts:
        yield Row("Failures", f"{', '.join(counts)}; a Job ends with more than {most} (backoffLimit)", "wrong")


def _size(report: Mapping[str, Any]) -> str:
    text = _of_at_most(report) if report["maxSize"] else str(report["size"])
    return text if report["sizeFrom"] == "job" else f"{text} (counted by its pods: jobs can't be read)"


def _flux(report: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the rows that need the lead's answer."""
    gpus, jobs = report["gpus"], report["jobs"]
    nodes = _nodes(report["nodes"])
    if report["scheduler"]:
        yield Row("Scheduler", _scheduler(**report["scheduler"]))
    yield Row("Quorum", _quorum(report))
    node_row, core_row, gpu_row, job_row = _grid(
        ("Nodes", nodes, tuple(nodes)),
        ("Cores", report["cores"], ("free", "allocated", "total")),
        ("GPUs", gpus, ("free", "allocated", "total")),
        ("Jobs", jobs, ("pending", "running", "done")),
    )
    yield node_row
    yield from (Row("Groups" if not number else "", _group(each)) for number, each in enumerate(report["groups"]))
    yield from _zones(report["locations"])
    yield from _reasons("Drained", report["drained"], "wrong")
    yield from _reasons("Missing", report["missing"], "waits")
    yield from _reasons("Containers", _named(report["containers"]), "wrong")
    if report["bursts"]["registered"]:
        yield Row("Bursts", "{up} up of {registered}".format_map(report["bursts"]))
    yield core_row
    if gpus["total"] or gpus["allocated"]:
        yield gpu_row
    ends = [f"{jobs[end]} {end}" for end in ("failed", "canceled", "timeout", "purged") if jobs[end]]
    yield job_row._replace(text=f"{job_row.text}  {', '.join(ends)}".rstrip())
    yield from (Row("" if number else "Queues", *_queue(each)) for number, each in enumerate(report["queues"]))
    waiting = [{"ranks": some(each["jobs"], MOST_JOBS), "reason": each["reason"]} for each in report["waiting"]]
    yield from _reasons("Pending", waiting, "waits")


def _queue(queue: Mapping[str, Any]) -> tuple[str, Tone]:
    """Return the line of a queue with a name."""
    text = "{name}  {pending} pending, {running} running".format_map(queue)
    return (f"{text}: {queue['problem']}", "waits") if queue["problem"] else (text, "")


def _quorum(report: Mapping[str, Any]) -> str:
    needed, is_reached = report["quorum"]["needed"], report["quorum"]["reached"]
    # it counts at the start alone; a cluster may shrink later
    is_more = report["sizeFrom"] == "job" and needed > report["size"] + sum(each["size"] for each in report["groups"])
    if not is_reached:
        return f"{needed}, not reached"
    return f"{needed}, reached" + (" at the start" if is_more else "")


def _zones(locations: Iterable[Mapping[str, str]]) -> Iterator[Row]:
    """Yield a row for each zone, if there are several."""
    zones: dict[str, list[int]] = {}
    for each in locations:
        zones.setdefault(each["zone"] or "zone unknown", []).extend(parse_idset(each["ranks"]))
    if len(zones) > 1:
        yield from _reasons("Zones", [{"ranks": to_idset(zones[zone]), "reason": zone} for zone in zones])


def _of_at_most(report: Mapping[str, Any]) -> str:
    """Return the size of a cluster or of a group, and its limits."""
    text = f"{report['size']} of at most {report['maxSize']}"
    if report["autoscaling"]:
        text += ", autoscaling from {min} to {max}".format_map(report["autoscaling"])
    return text


def _group(group: Mapping[str, Any]) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in _nodes(group["nodes"]).items())
    return f"{group['name']}: {_of_at_most(group)}: {counts}"


def _nodes(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers of nodes by their states, in the words and the order of the table."""
    return {**{state: counts[state] for state in ("up", "drained", "missing")}, "not started": counts["notStarted"]}


def _scheduler(name: str, version: str = "", **policies: str) -> str:
    policy = f"({', '.join(policies.values())})" if policies else ""
    return " ".join(filter(None, [name, version, policy]))


def _named(containers: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    return [{**one, "reason": f"{one['name']} fails: {one['reason']}"} for one in containers]


def _plain(row: Row, width: int, *, is_piped: bool = False) -> str:
    """Return a row as lines of a width; a fixed one on one line if it fits a terminal."""
    line = f"{row.label:{LABEL_COLUMNS}}{row.text}"
    if row.is_fixed and (is_piped or len(line) <= width):
        return line
    return textwrap.fill(
        unbroken(row.text),
        width,
        initial_indent=f"{row.label:{LABEL_COLUMNS}}",
        subsequent_indent=" " * LABEL_COLUMNS,
        break_long_words=False,
        break_on_hyphens=False,
    ).replace(UNBROKEN, " ")


def _coloured(rows: Iterable[Row], width: int) -> str:
    from rich.cells import cell_len  # noqa: PLC0415 - see terminal.py
    from rich.text import Text  # noqa: PLC0415

    text = Text(end="")
    for row in rows:
        for line in _plain(row, min(width, WIDTH_COLUMNS)).split("\n"):
            text.append(line[:LABEL_COLUMNS], "bold").append(f"{line[LABEL_COLUMNS:]}\n", STYLES[row.tone])
    # a word that is wider stays whole
    return drawn(text, max(width, *map(cell_len, text.plain.split("\n"))))


def _reasons(label: str, groups: Iterable[Mapping[str, str]], tone: Tone = "") -> Iterator[Row]:
    """Yield a row for each reason; the first has the label."""
    for number, group in enumerate(groups):
        yield Row("" if number else label, f"{group['ranks']}: {group['reason']}", tone)


def _grid(*rows: tuple[str, Mapping[str, int], Sequence[str]]) -> Iterator[Row]:
    """Yield rows of a label and cells ``number word`` with aligned columns."""
    grid = [[(str(numbers[word]), word) for word in words] for _, numbers, words in rows]
    columns = zip_longest(*grid, fillvalue=("", ""))
    widths = [[max(len(text) for text in texts) for texts in zip(*column, strict=True)] for column in columns]
    for (label, *_), cells in zip(rows, grid, strict=True):
        pairs = zip(cells, widths, strict=False)
        texts = [f"{number:>{right}} {word:{left}}" for (number, word), (right, left) in pairs]
        yield Row(label, "  ".join(texts).rstrip(), is_fixed=True)


def left_at(job: Mapping[str, Any]) -> float | None:
    """Return when a job left its nodes, by its record, in seconds since the epoch; None while it has not ended."""
    end: float | None = job.get("t_cleanup") or job.get("t_inactive")
    return end


def duration(seconds: float) -> str:
    """Return seconds as a text of at most two units.

    >>> duration(59), duration(3600), duration(93784)
    ('59s', '1h', '1d2h')
    """
    left = int(seconds)
    parts: list[str] = []
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count or parts:
            parts.append(f"{count}{unit}" if count else "")
    return "".join(parts[:2]) or "0s"


def bar(share: float) -> str:
    """Return a part of 1 as a bar, and as a number.

    >>> bar(0.4)
    '[||||||||............] 40%'
    """
    full = min(BAR_CHARACTERS, math.ceil(share * BAR_CHARACTERS))
    return f"[{'|' * full}{'.' * (BAR_CHARACTERS - full)}] {share:.0%}"


def progress(job: Mapping[str, Any], now: float) -> str:
    """Return how far a running job says that it is, and in how long it ends if it goes on so; "" if it says nothing.

    >>> progress({"state": "RUN", "t_run": 60.0, "progress": 0.4}, 180.0)
    '[||||||||............] 40%, ~3m left'
    """
    done = job.get("progress")
    if done is None or job["state"] != "RUN":
        return ""
    left = f", ~{duration((now - job['t_run']) * (1 - done) / done)} left" if done and job.get("t_run") else ""
    return f"{bar(done)}{left}"
