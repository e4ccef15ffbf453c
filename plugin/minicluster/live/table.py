"""The table that ``minicluster status`` prints for people, from its document."""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from minicluster.idset import parse_idset, to_idset

#: Columns of the labels, and of the whole table
LABEL_COLUMNS, WIDTH_COLUMNS = 13, 80
#: The most names of jobs in a row of the waiting ones
MOST_JOBS = 3


def table(found: Mapping[str, Any]) -> str:
    """Return a document as a text for people."""
    return "\n".join(_rows(found)) + "\n"


def _rows(found: Mapping[str, Any]) -> Iterator[str]:
    version = f", Flux {found['flux']}" if found["flux"] else ""
    yield _row("MiniCluster", f"{found['name']}, namespace {found['namespace']}, age {duration(found['age'])}{version}")
    yield _row("State", ": ".join(filter(None, [found["state"], found["why"]])))
    yield _row("Size", _size(found))
    yield from _failures(**found["failures"] or {"pods": 0, "most": 0, "groups": {}})
    if found["nodes"]:
        yield from _flux(found)
    else:
        yield from _reasons("Pods", found["pods"])
        yield from _reasons("Containers", _named(found["containers"]))
    yield from (_row("Problem", problem) for problem in found["problems"] or ())
    if found["longestWait"]:
        yield _row("Longest wait", duration(found["longestWait"]))


def _failures(pods: int, most: int, groups: Mapping[str, int]) -> Iterator[str]:
    named = {"": pods, **{f" of group {name}": count for name, count in groups.items()}}
    counts = [f"{count} pod{'s' if count > 1 else ''}{of}" for of, count in named.items() if count]
    if counts:
        yield _row("Failures", f"{', '.join(counts)}; a Job ends with more than {most} (backoffLimit)")


def _size(found: Mapping[str, Any]) -> str:
    text = _of_at_most(found) if found["maxSize"] else str(found["size"])
    return text if found["sizeFrom"] == "job" else f"{text} (counted by its pods: jobs can't be read)"


def _flux(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the rows that need the lead's answer."""
    gpus, jobs = found["gpus"], found["jobs"]
    nodes = _nodes(found["nodes"])
    if found["scheduler"]:
        yield _row("Scheduler", _scheduler(**found["scheduler"]))
    yield _row("Quorum", _quorum(found))
    node_row, core_row, gpu_row, job_row = _grid(
        ("Nodes", nodes, tuple(nodes)),
        ("Cores", found["cores"], ("free", "allocated", "total")),
        ("GPUs", gpus, ("free", "allocated", "total")),
        ("Jobs", jobs, ("pending", "running", "done")),
    )
    yield node_row
    yield from (_row("Groups" if not number else "", _group(each)) for number, each in enumerate(found["groups"]))
    yield from _zones(found["locations"])
    yield from _reasons("Drained", found["drained"])
    yield from _reasons("Missing", found["missing"])
    yield from _reasons("Containers", _named(found["containers"]))
    if found["bursts"]["registered"]:
        yield _row("Bursts", "{up} up of {registered}".format_map(found["bursts"]))
    yield core_row
    if gpus["total"] or gpus["allocated"]:
        yield gpu_row
    ends = [f"{jobs[end]} {end}" for end in ("failed", "canceled", "timeout", "purged") if jobs[end]]
    yield f"{job_row}  {', '.join(ends)}".rstrip()
    yield from _reasons(
        "Pending", [{"ranks": _some(each["jobs"]), "reason": each["reason"]} for each in found["waiting"]]
    )


def _quorum(found: Mapping[str, Any]) -> str:
    needed, is_reached = found["quorum"]["needed"], found["quorum"]["reached"]
    # it counts at the start alone; a cluster may shrink later
    is_more = found["sizeFrom"] == "job" and needed > found["size"] + sum(each["size"] for each in found["groups"])
    if not is_reached:
        return f"{needed}, not reached"
    return f"{needed}, reached" + (" at the start" if is_more else "")


def _zones(locations: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """Yield a row for each zone, if there are several."""
    zones: dict[str, list[int]] = {}
    for each in locations:
        zones.setdefault(each["zone"] or "zone unknown", []).extend(parse_idset(each["ranks"]))
    if len(zones) > 1:
        yield from _reasons("Zones", [{"ranks": to_idset(zones[zone]), "reason": zone} for zone in zones])


def _of_at_most(found: Mapping[str, Any]) -> str:
    """Return the size of a cluster or of a group, and its limits."""
    text = f"{found['size']} of at most {found['maxSize']}"
    if found["autoscaling"]:
        text += ", autoscaling from {min} to {max}".format_map(found["autoscaling"])
    return text


def _group(group: Mapping[str, Any]) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in _nodes(group["nodes"]).items())
    return f"{group['name']}: {_of_at_most(group)}: {counts}"


def _nodes(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers of nodes by their states, in the words and the order of the table."""
    return {**{state: counts[state] for state in ("up", "drained", "missing")}, "not started": counts["notStarted"]}


def _some(jobs: Sequence[str]) -> str:
    """Return the names of a few jobs, and how many more there are."""
    more = f" and {len(jobs) - MOST_JOBS} more" if len(jobs) > MOST_JOBS else ""
    return ", ".join(jobs[:MOST_JOBS]) + more


def _scheduler(name: str, version: str = "", **policies: str) -> str:
    policy = f"({', '.join(policies.values())})" if policies else ""
    return " ".join(filter(None, [name, version, policy]))


def _named(containers: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    return [{**one, "reason": f"{one['name']} fails: {one['reason']}"} for one in containers]


def _row(label: str, text: str) -> str:
    return textwrap.fill(
        text,
        WIDTH_COLUMNS,
        initial_indent=f"{label:{LABEL_COLUMNS}}",
        subsequent_indent=" " * LABEL_COLUMNS,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _reasons(label: str, groups: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """Yield a row for each reason; the first has the label."""
    for number, group in enumerate(groups):
        yield _row("" if number else label, f"{group['ranks']}: {group['reason']}")


def _grid(*rows: tuple[str, Mapping[str, int], Sequence[str]]) -> Iterator[str]:
    """Yield rows of a label and cells ``number word`` with aligned columns."""
    grid = [[(str(numbers[word]), word) for word in words] for _, numbers, words in rows]
    columns = zip_longest(*grid, fillvalue=("", ""))
    widths = [[max(len(text) for text in texts) for texts in zip(*column, strict=True)] for column in columns]
    for (label, *_), cells in zip(rows, grid, strict=True):
        pairs = zip(cells, widths, strict=False)
        texts = [f"{number:>{right}} {word:{left}}" for (number, word), (right, left) in pairs]
        yield f"{label:{LABEL_COLUMNS}}{'  '.join(texts)}".rstrip()


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


class Column(NamedTuple):
    """A column of a table, and what it shows of a row."""

    head: str
    cell: Callable[[Any], str]


def in_columns(columns: Sequence[Column], rows: Iterable[Any]) -> str:
    """Return rows as kubectl would print them."""
    cells = [[column.head for column in columns], *([column.cell(row) for column in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "".join(f"{line.rstrip()}\n" for line in lines)
