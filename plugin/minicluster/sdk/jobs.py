"""Jobs of the SDK: their options, their state in the queue, and whether one would fit; tables for a notebook."""

import html
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from minicluster.cluster.states import of_job
from minicluster.kube.port import KubePort
from minicluster.sdk.exceptions import ArgumentError
from minicluster.status import why

#: A duration as Flux writes it (RFC 23)
LIMIT_TEXT = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")
UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def as_html(rows: Mapping[str, object]) -> str:
    """Return a table of texts, each of which is data; rows without a text are left out."""
    cells = (
        f"<tr><th style='text-align:left'>{html.escape(name)}</th><td style='text-align:left'>{html.escape(str(value))}"
        "</td></tr>"
        for name, value in rows.items()
        if value not in ("", None)
    )
    return f"<table>{''.join(cells)}</table>"


def table_html(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table of texts with a row of names, each text data."""

    def row(tag: str, cells: Sequence[object]) -> str:
        texts = ("" if cell is None else html.escape(str(cell)) for cell in cells)
        begin = f"<{tag} style='text-align:left'>"
        return f"<tr>{''.join(f'{begin}{text}</{tag}>' for text in texts)}</tr>"

    return f"<table>{row('th', head)}{''.join(row('td', cells) for cells in rows)}</table>"


@dataclass(frozen=True)
class Job:
    """A job in the queue."""

    id: str
    name: str
    state: str  #: depend, priority, sched, run, cleanup or inactive
    result: str  #: completed, failed, canceled or timeout; "" until it is inactive
    exit_code: int | None  #: once it is inactive
    nodes: str  #: a hostlist, "" until it has nodes
    tasks: int
    submitted: float  #: seconds since 1970
    runtime: float  #: seconds
    waits: str = ""  #: why it waits, "" for one that does not

    @property
    def status(self) -> str:
        """The word of `minicluster jobs`: pending, running, completed, failed, canceled or timeout."""
        return of_job(self.state.upper(), self.result.upper()).lower()

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        rows = {"job": self.id, "name": self.name, "state": self.status, "why": self.waits, "nodes": self.nodes}
        return as_html({**rows, "exit code": self.exit_code, "seconds": round(self.runtime, 1) or None})


class JobTable(list[Job]):
    """A list of jobs that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        """Return what a notebook shows; the newest jobs are the last."""
        head = ("job", "name", "state", "nodes", "tasks", "seconds", "exit code", "why")
        rows = [
            (job.id, job.name, job.status, job.nodes, job.tasks, round(job.runtime, 1), job.exit_code, job.waits)
            for job in self
        ]
        return table_html(head, rows)


class JobOptions(TypedDict, total=False):
    """The options of `MiniCluster.submit`: none has to be given."""

    nodes: int  #: without ``tasks``: whole nodes, with a task each
    tasks: int  #: 1 by default, or one for each node
    cores_per_task: int  #: 1 by default
    gpus_per_task: int  #: 0 by default
    exclusive: bool  #: whole nodes, whatever the tasks need
    instance: bool  #: in an instance of Flux of its own, on ``nodes`` whole nodes, 1 by default
    environment: Mapping[str, object]  #: added to that of the lead's container
    working_dir: str  #: by default that of the lead's container
    upload: str  #: a folder of this machine, which all nodes get first; the job runs in it
    packages: str  #: a requirements.txt or uv.lock there, whose Python packages the job has
    time_limit: (
        float | str
    )  #: seconds, or a text with its unit: ``"90s"``, ``"15m"``, ``"1.5h"``, ``"2d"``; none by default
    name: str  #: by default the command's
    attributes: Mapping[str, Any]  #: of the jobspec, by their paths: ``{"system.shell.options.verbose": 1}``


def words_of(command: str | Sequence[str], more: Sequence[object] = ()) -> list[str]:
    """Return the words of a command. Raises ArgumentError."""
    if callable(command):
        raise ArgumentError(
            f"{command!r} is a Python callable, and `run` takes a command: submit, map and executor of a MiniCluster "
            "take functions"
        )
    try:
        words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
    except ValueError as error:
        raise ArgumentError(f"{command!r} is not a command: {error}; a list needs no quotes") from None
    except TypeError:
        raise ArgumentError(f"{command!r} is not a command: give a text, or a list of words") from None
    if not words:
        raise ArgumentError(f"{command!r} is not a command: give at least one word")
    return words + [str(word) for word in more]


def refuse_unknown(what: str, options: Mapping[str, object], known: type) -> None:
    """Raise ArgumentError for an option that a TypedDict does not have."""
    names = known.__annotations__
    if unknown := [name for name in options if name not in names]:
        raise ArgumentError(f"{unknown[0]} is not an option of {what}: give one of {', '.join(names)}")


def job_of(words: list[str], options: JobOptions) -> dict[str, Any]:
    """Return a job as remote.py reads it, without the options that are not set. Raises ArgumentError."""
    given = {name: value for name, value in options.items() if value not in (None, "", False)}
    refuse_unknown("a job", given, JobOptions)
    _check(options)
    if options.get("time_limit") is not None:
        given["time_limit"] = _seconds(options["time_limit"])
    environment = {name: str(value) for name, value in (options.get("environment") or {}).items()}
    attributes = dict(options.get("attributes") or {})
    if name := given.pop("name", ""):
        attributes["system.job.name"] = name
    return {"command": words, **given, "environment": environment, "attributes": attributes}


def _check(options: JobOptions) -> None:
    """Raise ArgumentError for numbers that make no sense."""
    for name, least in (("nodes", 1), ("tasks", 1), ("cores_per_task", 1), ("gpus_per_task", 0)):
        value = options.get(name)
        if value is not None and (not isinstance(value, int) or value < least):
            raise ArgumentError(f"{name}={value!r}: give a whole number, {least} or more")
    nodes, tasks = options.get("nodes"), options.get("tasks")
    if nodes and tasks and nodes > tasks:
        raise ArgumentError(f"nodes={nodes} for tasks={tasks}: each node needs a task; leave tasks out or raise it")
    if options.get("exclusive") and not nodes:
        raise ArgumentError("exclusive=True without nodes: say how many nodes")


def _seconds(limit: object) -> float:
    """Return a limit of time in seconds. Raises ArgumentError."""
    if isinstance(limit, str) and (match := LIMIT_TEXT.fullmatch(limit)):
        limit = float(match[1]) * UNIT_SECONDS[match[2] or "s"]
    if not isinstance(limit, int | float) or not limit > 0:
        raise ArgumentError(
            f"time_limit={limit!r}: give seconds, more than 0, or a text such as '15m' or '2h'; without it there is no "
            "limit"
        )
    return limit


#: The options of `flux submit`, by those of a job
OF_FLUX = {"nodes": "--nodes", "tasks": "--ntasks", "cores_per_task": "--cores-per-task"}
OF_FLUX |= {"gpus_per_task": "--gpus-per-task", "working_dir": "--cwd"}


@dataclass(frozen=True)
class Fit:
    """What would become of a job."""

    refused: str  #: why it can never run, "" if it can
    waits: str  #: why it would wait, "" if it would run now
    seconds: float | None  #: until it starts, by the limits of the jobs before it; None if that is not known
    needs: Mapping[str, int]  #: the size that it needs, by group, "" for the cluster's own nodes; {} if it is there
    text: str  #: all of it, as `minicluster why NAME --for` prints it

    def __str__(self) -> str:
        return self.text


def would_fit(kube: KubePort, name: str, options: JobOptions) -> Fit:
    """Ask the lead about a job. Raises ArgumentError, ChoiceError, StateError, StatusError."""
    cluster, known = why.ask_request(kube, name, [*_words(job_of(["true"], {**options, "upload": "", "packages": ""}))])
    sentences = why.request_in_words(cluster.name, known, why.sizes_of(cluster))
    at = (known["starts"] or {}).get("at")
    seconds = None if at is None else max(0.0, at - known["now"])
    waits = "" if why.runs_now(known) else known["waits"]
    return Fit(known["refused"], waits, seconds, known["needs"], "\n".join(each.text for each in sentences))


def _words(job: Mapping[str, Any]) -> Iterator[str]:
    """Yield a job's options as words of `flux submit`."""
    whole = {"tasks": job["nodes"]} if "nodes" in job and "tasks" not in job else {}
    for name, value in {**job, **whole}.items():
        if name in OF_FLUX:
            yield f"{OF_FLUX[name]}={value}"
    if job.get("exclusive") or whole:
        yield "--exclusive"
    if "time_limit" in job:
        yield f"--time-limit={job['time_limit']}s"
    yield from (f"--setattr={name}={value}" for name, value in job["attributes"].items())
