"""The jobs of a MiniCluster: from the lead's queue while it runs, else from the report in the log of the last lead."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from minicluster.cluster.find import LiveCluster
from minicluster.cluster.job import recorded
from minicluster.cluster.pods import Pod
from minicluster.cluster.states import JOB_TONES, of_job
from minicluster.console import lines, streams
from minicluster.errors import KubernetesError, UsageError, cut, one_line
from minicluster.kube.port import KubePort
from minicluster.lead import ask
from minicluster.lead.program import BOOT
from minicluster.status import used
from minicluster.status.columns import Column, in_columns
from minicluster.status.lookup import Unasked, ask_lead, find, refusals, refuse_forbidden
from minicluster.status.table import duration, left_at, progress

Row = dict[str, Any]
#: How the lines of a report begin in a log, and the line before them, which has their number (pod/start/report.sh). The
#: end of a job's output may be before it on its line
JOB_LINE, COUNT_LINE = "minicluster-job: ", re.compile(r"minicluster-jobs: (\d+)$")
#: The line that says that the report lacks jobs
MISSING = re.compile(r"minicluster: (\d+ jobs are missing in the report: .*)$")
#: Asks a program that comes on standard input. Takes BOOT, and the program's words
ASK = 'exec "$MINICLUSTER_HOME/bin/flux" python -c "$0" "$@"'
#: Jobs that have ended, of which as many are shown as `flux jobs -a` does
SHOWN_JOBS = 1000
#: Those that a picture shows, and keeps
PICTURE_JOBS = 10_000
#: The most characters of a name or a list of nodes
CELL_CHARACTERS = 40
#: The times of a job
TIMES = ("t_submit", "t_run", "t_cleanup", "t_inactive")


class KnownJobs(NamedTuple):
    """Jobs, by their ids."""

    rows: Sequence[Row]
    now: float | None = None  #: the lead's time when it told them; None if they are from a report


def find_jobs(kubernetes: KubePort, name: str, say: streams.Say, most: int = SHOWN_JOBS) -> KnownJobs:
    """Return the active jobs of a MiniCluster and the last ``most`` of the others, by their ids.

    Raises StateError if they can't be known, StatusError.
    """
    cluster = find(kubernetes, name)
    answer = ask_lead(cluster, lambda lead: ask_jobs(kubernetes, lead, most))
    if not isinstance(answer, Unasked):
        known, purged, earlier = answer
        _tell(say, purged, earlier, most, known.rows)
        return known
    lead = cluster.pods.get(0)
    rows, count, missing = reported(_lines(kubernetes, lead) if lead else ())
    if missing:
        say(missing)
    if count is None:
        raise answer.error(_where(kubernetes, cluster))
    if count > len(rows):
        say(f"the log of the lead has {len(rows)} of the {count} jobs of its report")
    return KnownJobs(last(rows, most, say))


def last(rows: Sequence[Row], most: int, say: streams.Say) -> list[Row]:
    """Return the active jobs of a report and the last ``most`` of the others, by their ids; tell of earlier ones."""
    # in a report those that have ended come first
    earlier = max(0, sum(row["state"] == "INACTIVE" for row in rows) - most)
    _tell(say, 0, earlier, most, rows[earlier:])
    return _by_id(rows[earlier:])


def _tell(say: streams.Say, purged: int, earlier: int, most: int, rows: Iterable[Row]) -> None:
    if purged:
        say(f"the records of {purged} jobs are gone, which ended before all others")
    if earlier:
        say(f"{earlier} more jobs ended before these: --count {most + earlier} shows them")
    for line in used.gone_inside(rows):
        say(line)


def _by_id(rows: Iterable[Row]) -> list[Row]:
    known = [*rows]
    # the logs of an older lead have no number
    numbers = {row["id"]: row.get("number", 0) for row in known}

    def place(row: Row) -> tuple[int, bool, float]:
        """Return the place of a job; those inside of it come after it."""
        outermost, *inner = row["id"].split("/")
        return numbers.get(outermost) or 0, bool(inner), (row["t_submit"] or 0.0) if inner else 0.0

    return sorted(known, key=place)


def ask_jobs(kubernetes: KubePort, lead: Pod, most: int = SHOWN_JOBS) -> tuple[KnownJobs, int, int]:
    """Return the active jobs in the lead's queue and the last ``most`` of the others.

    Also return how many it no longer has, and how many earlier ones. Raises what `ask` raises.
    """
    text = ask.ask(kubernetes, lead, "jobs", ("/bin/sh", "-c", ASK, BOOT, str(most)))
    *rows, last = (json.loads(line) for line in lines.split(text))
    return KnownJobs(_by_id(rows), last.get("now")), int(last["purged"]), int(last["earlier"])


def _lines(kubernetes: KubePort, lead: Pod) -> Iterator[str]:
    """Yield the lines of a lead's log, as far as there are some. Raises AccessError."""
    cutter = lines.Cutter()
    try:
        for part in kubernetes.log(lead.name, lead.runner):
            yield from (line.decode(errors="replace") for line in cutter.take(part))
    except KubernetesError as error:
        refuse_forbidden(error)
    yield from (line.decode(errors="replace") for line in cutter.end())


def reported(log: Iterable[str]) -> tuple[list[Row], int | None, str]:
    """Return the jobs of the last report in a log, how many it is about, and the line about those that it lacks.

    The number is None if there is no report.
    """
    rows: list[Row] = []
    count: int | None = None
    missing = ""
    for line in log:
        text = line.rstrip("\r\n")
        begin = COUNT_LINE.search(text)
        if text.startswith(JOB_LINE) and count is not None:
            row = _row(text.removeprefix(JOB_LINE))
            rows += [row] if row and len(rows) < count else []
        elif begin:
            rows, count = [], int(begin[1])
        elif said := MISSING.fullmatch(text):
            missing = said[1]
    return rows, count, missing


def read_report(path: Path) -> list[Row]:
    """Return the jobs of a report: the file of report.path, or lines of a lead's log. Raises UsageError."""
    with path.open("rb") as file:
        text = streams.read(file).decode(errors="replace")
    report_rows = (_row(line[max(0, line.find("{")) :]) for line in lines.split(text))
    rows = [row for row in report_rows if row]
    if not rows:
        raise UsageError(f"{path} has no report of jobs: give the file of report.path, or a log with report.log")
    return rows


def _row(text: str) -> Row | None:
    """Return the job in a line; None for a line that is not ours."""
    try:
        record = json.loads(text)
    except ValueError:
        return None
    return (
        record if isinstance(record, dict) and {"id", "number", "state", "result", "t_run"} <= record.keys() else None
    )


def _where(kubernetes: KubePort, cluster: LiveCluster) -> str:
    """Return, in words, where the jobs are reported that can't be shown."""
    with refusals():
        job = kubernetes.get("job", cluster.name)
    values = recorded(job)
    path = values.get("report.path", "")
    if path:
        # a digest stands for a long text
        file = "the file of report.path" if path.startswith("sha256:") else path
        return f"the report of its jobs is in {file}, on a volume of its pods"
    if values.get("report.log") == "true":
        return "its log has no report of its jobs: the lead did not end by itself, or the log's begin is gone"
    return "its jobs are known while its lead runs, and later with report.log or report.path"


def table(rows: Sequence[Mapping[str, Any]], now: float | None, width: int = 0, *, is_wide: bool = False) -> str:
    """Return jobs as a table for people, as `in_columns` does; ``now`` as `KnownJobs` has it."""
    if now is None:
        now = max(filter(None, (row.get(key) for row in rows for key in TIMES)), default=0.0)
    shown = [{**row, "end": _end(row, now), "done": progress(row, now)} for row in rows]
    some = {QUEUE_COLUMN: "queue", PROGRESS_COLUMN: "done", INSIDE_COLUMN: "inner"}
    columns = (*JOB_COLUMNS, *(column for column, key in some.items() if any(row.get(key) for row in shown)))
    if is_wide:
        columns += WIDE_COLUMNS + ((GPU_COLUMN,) if any(used.gpus(used.in_all(row)) for row in shown) else ())
    return in_columns(columns, shown, width)


def _end(row: Mapping[str, Any], now: float) -> float | None:
    end = left_at(row)
    return now if end is None and row["state"] == "RUN" else end


def _status(row: Mapping[str, Any]) -> str:
    return _short(of_job(row["state"], row["result"]))


def _start(row: Mapping[str, Any], how: str = "%Y-%m-%dT%H:%M:%SZ") -> str:
    at, about = row["t_run"], ""
    if not at and row["result"] is None:
        # of one that waits; older leads tell none
        at, about = row.get("t_estimate"), "~"
    return about + datetime.fromtimestamp(at, UTC).strftime(how) if at else "-"


def _duration(row: Mapping[str, Any]) -> str:
    return duration(max(0.0, row["end"] - row["t_run"])) if row["t_run"] and row["end"] else "-"


def _short(value: object) -> str:
    """Return a text on one line, fit for a terminal; a long one loses its end."""
    return cut(one_line(str(value)), CELL_CHARACTERS)


JOB_COLUMNS = (
    Column("ID", lambda row: one_line(str(row["id"])), is_name=True),
    Column("NAME", lambda row: _short(row.get("name") or "-"), may_break=True, goes=1),
    Column("NODES", lambda row: _short(row.get("nodes") or "-"), may_break=True, goes=3),
    Column("STATUS", _status, tone=lambda row: JOB_TONES.get(_status(row), "")),
    Column("EXIT CODE", lambda row: "-" if row.get("exit_code") is None else str(row["exit_code"])),
    Column("START", _start, brief=partial(_start, how="%m-%d %H:%M"), goes=2),
    Column("DURATION", _duration),
)
#: Where a queue has a name, a job says how far it is, or has jobs inside
QUEUE_COLUMN = Column("QUEUE", lambda row: _short(row.get("queue") or "-"), goes=4)
INSIDE_COLUMN = Column("JOBS INSIDE", lambda row: used.inner(row) or "-", goes=3)
PROGRESS_COLUMN = Column("PROGRESS", lambda row: row["done"] or "-")
WIDE_COLUMNS = (
    Column("MEM", lambda row: used.amount(used.in_all(row).memory) or "-"),
    Column("CPU", lambda row: used.cores(used.in_all(row).cores) or "-"),
)
#: Where a job has GPUs
GPU_COLUMN = Column("GPU", lambda row: used.gpus(used.in_all(row)) or "-")
