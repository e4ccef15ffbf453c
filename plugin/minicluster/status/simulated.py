"""What other sizes and scheduling policies would have done for the jobs of a MiniCluster: `minicluster simulate`."""

import json
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from minicluster.console.messages import counted
from minicluster.console.streams import Say
from minicluster.errors import StateError
from minicluster.flux import parse_idset
from minicluster.kube.port import KubePort
from minicluster.lead import ask
from minicluster.lead.program import BOOT, first_line
from minicluster.status.columns import Column, in_columns
from minicluster.status.lookup import Unasked, ask_lead, find
from minicluster.status.reported import Row, ask_jobs
from minicluster.status.table import duration

#: The most jobs that are replayed, of those that ended last
REPLAYED_JOBS = 2000
#: The policy of sched-simple, which has no name for it
IN_ORDER = "fcfs"


class Load(NamedTuple):
    """The jobs that a MiniCluster had, and its nodes."""

    name: str
    rows: Sequence[Row]  #: of jobs that ran to their end
    size: int
    cores: int  #: of a node
    policy: str


class Placed(NamedTuple):
    """Where a job is in a run of the model."""

    start: float
    ranks: str  #: an idset


class Run(NamedTuple):
    """A run of the model."""

    size: int
    policy: str
    placed: Sequence[Placed | None]  #: each job of the load; None for one that has no room


class Outcome(NamedTuple):
    """What became of the jobs; times are seconds."""

    run: str  #: recorded or simulated
    size: int | None  #: None where it may have changed
    policy: str
    jobs: int  #: that ran
    never: int  #: that have no room
    median_wait: float
    wait_95: float  #: 95 % of the jobs waited no longer
    makespan: float  #: from the first submission to the last end
    used: float | None  #: the part of the cores that jobs had
    node_hours: float | None


def load_of(kube: KubePort, name: str) -> Load:
    """Ask a MiniCluster's lead for its jobs and nodes. Raises StateError, StatusError."""
    cluster = find(kube, name)
    answer = ask_lead(
        cluster, lambda lead: (ask_jobs(kube, lead, REPLAYED_JOBS)[0].rows, ask.read_answer(ask.ask_status(kube, lead)))
    )
    if isinstance(answer, Unasked):
        raise answer.error("its lead has the records of its jobs")
    ended, flux = answer[0], answer[1].flux
    rows = [
        row for row in ended if row["number"] is not None and row["t_run"] and row["t_cleanup"] and row.get("ncores")
    ]
    if not rows:
        raise StateError(f"{cluster.name} has no job that ran and whose cores are recorded: there is nothing to replay")
    online = len(parse_idset(flux["online"])) or 1
    policy = flux["scheduler"].get("queuePolicy", IN_ORDER)
    size = cluster.job.size if cluster.job else online
    return Load(cluster.name, rows, size, max(1, flux["total"]["cores"] // online), policy)


def simulate(load: Load, sizes: Sequence[int], policies: Sequence[str]) -> list[Run]:
    """Return what the model makes of the present size and policy, and of each size with each policy."""
    asked = [(size, policy) for size in sizes or [load.size] for policy in policies or [load.policy]]
    runs = list(dict.fromkeys([(load.size, load.policy), *asked]))
    return [Run(*run, placed) for run, placed in zip(runs, replayed(load, runs), strict=True)]


def outcomes(load: Load, runs: Sequence[Run]) -> Iterator[Outcome]:
    """Yield what became of the jobs, and what the model makes of them in each run."""
    yield outcome(load, "recorded", None, "-", [row["t_run"] for row in load.rows])
    for run in runs:
        yield outcome(load, "simulated", run.size, run.policy, [each and each.start for each in run.placed])


def records(load: Load, run: Run) -> list[Row]:
    """Return the records that the jobs would have had in a run, those that can't run left out."""
    return [
        {
            **row,
            "t_run": each.start,
            "t_cleanup": each.start + _end(row) - row["t_run"],
            "t_inactive": None,
            "ranks": each.ranks,
            "nodes": f"{load.name}-[{each.ranks}]",
        }
        for row, each in zip(load.rows, run.placed, strict=True)
        if each
    ]


def replayed(load: Load, runs: Sequence[tuple[int, str]]) -> list[list[Placed | None]]:
    """Return where the jobs are in each run, by replay.py in a process of its own."""
    jobs = []
    for row in load.rows:
        nodes = row["nnodes"] or 1
        cores, seconds = max(1, row["ncores"] // nodes), _end(row) - row["t_run"]
        jobs.append((row["t_submit"], row["urgency"] or 0, nodes, cores, seconds, row["duration"] or 0))
    asked = {"jobs": jobs, "runs": [(size, load.cores, policy) for size, policy in runs]}
    text = f"{first_line('replay')}{json.dumps(asked)}\n"
    # words, no shell
    done = subprocess.run([sys.executable, "-c", BOOT], input=text, capture_output=True, text=True, check=True)  # noqa: S603
    return [[Placed(*each) if each else None for each in run] for run in json.loads(done.stdout)]


def outcome(load: Load, run: str, size: int | None, policy: str, starts: Sequence[float | None]) -> Outcome:
    """Return what became of the jobs that start at some times; None for those that never do."""
    ran = [(row, start) for row, start in zip(load.rows, starts, strict=True) if start is not None]
    waits = sorted(start - row["t_submit"] for row, start in ran)
    ends = [start + _end(row) - row["t_run"] for row, start in ran]
    makespan = max(ends, default=0.0) - min((row["t_submit"] for row, _ in ran), default=0.0)
    core_seconds = sum(row["ncores"] * (_end(row) - row["t_run"]) for row, _ in ran)
    return Outcome(
        run,
        size,
        policy,
        len(ran),
        len(load.rows) - len(ran),
        _part(waits, 0.5),
        _part(waits, 0.95),
        makespan,
        core_seconds / (size * load.cores * makespan) if size and makespan else None,
        size * makespan / 3600 if size else None,
    )


def _end(row: Mapping[str, Any]) -> float:
    return float(row["t_inactive"] or row["t_cleanup"])


def _part(ordered: Sequence[float], part: float) -> float:
    """Return the value that a part of them don't exceed."""
    return ordered[math.ceil(part * len(ordered)) - 1] if ordered else 0.0


COLUMNS = (
    Column("JOBS", lambda each: f"{each.run} {each.jobs}", is_name=True),
    Column("SIZE", lambda each: str(each.size or "-")),
    Column("POLICY", lambda each: each.policy),
    Column("MEDIAN WAIT", lambda each: duration(each.median_wait)),
    Column("95 % WAIT", lambda each: duration(each.wait_95)),
    Column("MAKESPAN", lambda each: duration(each.makespan)),
    Column("IN USE", lambda each: "-" if each.used is None else f"{each.used:.0%}"),
    Column("NODE-HOURS", lambda each: "-" if each.node_hours is None else f"{each.node_hours:.2f}"),
)


def table(rows: Sequence[Outcome], say: Say, width: int = 0) -> str:
    """Return outcomes as a table for people; tell of jobs that have no room."""
    for each in rows:
        if each.never and each.size:
            say(f"{counted(each.never, 'job')} can't run on {counted(each.size, 'node')}: more is asked for")
    return in_columns(COLUMNS, rows, width)
