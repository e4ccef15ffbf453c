"""The jobs inside of jobs that are instances of Flux (flux batch, flux alloc, `minicluster run --in`).

When an instance ends, it adds what it has of its jobs to the outermost job (instance_jobs.sh); one that runs is asked.
The lead asks too, again and again, and keeps the last answer in a file: one that is killed tells nothing.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any, Collection, Iterable, Iterator, Mapping

import state
from history import folder
from job_record import USAGE_ATTRIBUTES, annotation, record
from state import parse_idset, to_idset

#: Where the ended instances inside of a job have told of their jobs
TOLD_KEY = "guest.minicluster_jobs"
#: The folder of the history with the last answers of those that run
ANSWERS_FOLDER = "inside"
#: The newest jobs inside of one job that are kept; nodes that are asked, and seconds for their answers
INNER_JOBS, INSTANCE_NODES, INSTANCE_SECONDS = 1000, 256, 10.0
#: Flux's counts of jobs (job-list.job-stats) under our names
COUNTS = {"successful": "completed", "failed": "failed", "canceled": "canceled", "timeout": "timeout"}
#: Of one that was killed before it told
UNKNOWN = {"total": None, **dict.fromkeys(COUNTS.values())}
#: What Flux's counts have, and no job that it lists
COUNTS_KEY = "job_states"


def uri_of(job: Mapping[str, Any]) -> str:
    """Return the address of the instance that a job is; "" for one that is none."""
    return str(annotation(job, "user", "uri") or "")


def told_inside(handle: Any, jobs: Collection[Mapping[str, Any]], *, asks: bool = False) -> dict[int, str]:
    """Return what the ended instances inside of jobs have told, by the ids of these jobs, after what they said before.

    With ``asks`` it is also what those that run say now.
    """
    told = _kept({job["id"] for job in jobs})
    instances = [job for job in jobs if uri_of(job)]
    wanted = ({"id": job["id"], "keys": [TOLD_KEY], "flags": 0} for job in instances)
    # all are asked before the first answer
    futures = [handle.rpc("job-info.lookup", each) for each in wanted]
    for job, future in zip(instances, futures):
        with suppress(OSError):  # without a word of any
            told[job["id"]] = told.get(job["id"], "") + str(future.get()[TOLD_KEY])
    if asks and instances:
        with suppress(OSError, subprocess.TimeoutExpired):
            for number, text in _answers(instances).items():
                told[number] = told.get(number, "") + text
    return told


def kept_file(number: int) -> Path:
    """Return the file with the last answer of an instance that runs."""
    return folder() / ANSWERS_FOLDER / str(number)


def _kept(numbers: set[int]) -> dict[int, str]:
    kept = {}
    for file in (folder() / ANSWERS_FOLDER).glob("*"):
        with suppress(OSError):  # it is in the history now
            if int(file.name) in numbers:
                kept[int(file.name)] = file.read_text(encoding="utf-8")
    return kept


def keep_answers(handle: Any) -> None:
    """Ask the instances that run, and keep what they say of their jobs. Raises OSError."""
    running = [job for job in state.jobs(handle, "running", USAGE_ATTRIBUTES) if uri_of(job)]
    with suppress(OSError, subprocess.TimeoutExpired):
        for number, text in _answers(running).items():
            kept_file(number).parent.mkdir(parents=True, exist_ok=True)
            # its counts are for its end: they say that it told all
            lines = (line for line in text.split("\n") if f'"{COUNTS_KEY}"' not in line)
            kept_file(number).write_text("\n".join(lines), encoding="utf-8")


def question(instances: Iterable[Mapping[str, Any]], most: int) -> list[str]:
    """Return the words that ask the instances of jobs that run; [] where none runs."""
    asked = []
    for job in instances:
        # its first broker is on its first node; the host's name may be another one there
        _, slash, socket = uri_of(job).partition("://")[2].partition("/")
        if slash and job.get("ranks"):
            asked.append((parse_idset(job["ranks"])[0], f"{job['id']}=/{socket}"))
    nodes = sorted({rank for rank, _ in asked})[:INSTANCE_NODES]
    home = os.environ.get("MINICLUSTER_HOME", "")
    told = [f"{rank}={word}" for rank, word in asked if rank in nodes]
    words = ["exec", "-n", "-q", "-d", "/", "-r", to_idset(nodes), "/bin/sh", f"{home}/minicluster/instance_jobs.sh"]
    return [f"{home}/bin/flux", *words, "ask", str(most), *told] if asked else []


def _answers(instances: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """Ask the instances of jobs that run. Raises OSError, TimeoutExpired."""
    words = question(instances, INNER_JOBS)
    if not words:
        return {}
    done = subprocess.run(words, capture_output=True, check=False, timeout=INSTANCE_SECONDS)
    return answers(done.stdout.decode(errors="replace"))


def answers(text: str) -> dict[int, str]:
    """Return what running instances have said, by their jobs."""
    from flux.job import JobID

    told: dict[int, str] = {}
    for line in text.split("\n"):
        number, _, rest = line.partition(" ")
        if number.isdecimal():
            told[int(number)] = told.get(int(number), "") + f"{JobID(int(number)).f58plain} {rest}\n"
    return told


def lines_inside(number: int, text: str, end: float | None) -> tuple[Mapping[str, int | None] | None, list[str]]:
    """Return the counts of all jobs inside of a job, None while it has told none, and the lines about the newest ones.

    ``end`` is when it ended, None while it runs. What had not ended, as far as it told, was lost with it.
    """
    from flux.job import JobID

    stats, listed = _parsed(text)
    newest = sorted(listed, key=lambda each: (each[1].get("t_inactive") or float("inf"), each[1]["id"]))[-INNER_JOBS:]
    lines = []
    for path, job in newest:
        row = record(job, path, None)
        if end and row["state"] != "INACTIVE":
            row = lost(row, end)
        inner = _counts(stats, path, has_ended=bool(uri_of(job)) and row["state"] == "INACTIVE")
        # ids of other instances are the same numbers
        lines.append(json.dumps({**row, "number": None, "inner": inner}) + "\n")
    counts = _counts(stats, JobID(number).f58plain, has_ended=bool(end))
    return counts and {**counts, "kept": len(lines)}, lines


def lost(row: Mapping[str, Any], end: float) -> dict[str, Any]:
    """Return the record of a job of which nobody knows how it ended: its instance was killed."""
    return {**row, "state": "INACTIVE", "result": "LOST", "t_inactive": end}


def records_inside(handle: Any) -> Iterator[dict[str, Any]]:
    """Yield the records of the jobs inside of jobs that run. Raises OSError."""
    for number, text in told_inside(handle, state.jobs(handle, "running", USAGE_ATTRIBUTES), asks=True).items():
        yield from map(json.loads, lines_inside(number, text, None)[1])


def _parsed(text: str) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
    from flux.job import JobID

    stats: dict[str, Any] = {}
    by_path: dict[str, Any] = {}
    for line in text.split("\n"):
        with suppress(ValueError, KeyError, TypeError, AttributeError):  # anybody can write there
            ids, _, rest = line.partition(" ")
            path = "/".join(JobID(name).f58plain for name in ids.split("/"))
            told = json.loads(rest)
            if COUNTS_KEY in told:
                stats[path] = {name: int(told[key]) for key, name in COUNTS.items()}
                stats[path]["total"] = int(told[COUNTS_KEY]["total"]) + int(told.get("inactive_purged", 0))
            else:
                by_path[f"{path}/{JobID(told['id']).f58plain}"] = {**told, "state": int(told["state"])}
    return stats, [*by_path.items()]


def _counts(stats: Mapping[str, Mapping[str, int]], path: str, *, has_ended: bool) -> Mapping[str, int | None] | None:
    """Return the counts of all jobs below an instance; None where it has told none, and may yet."""
    if path not in stats:
        return UNKNOWN if has_ended else None
    below = [each for of, each in stats.items() if f"{of}/".startswith(f"{path}/")]
    return {key: sum(each[key] for each in below) for key in UNKNOWN}


def lines_with_inner(job: Mapping[str, Any], line: str, told: dict[int, str]) -> Iterator[str]:
    """Yield the lines about the jobs inside of a job, and then its own, which has their counts."""
    if job["id"] in told or uri_of(job):
        counts, lines = lines_inside(job["id"], told.get(job["id"], ""), job.get("t_inactive"))
        yield from lines
        line = json.dumps({**json.loads(line), "inner": counts}) + "\n"
    yield line
