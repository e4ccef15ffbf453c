"""The jobs inside of jobs that are instances of Flux (flux batch, flux alloc, `minicluster run --in`).

When an instance ends, it adds what it has of its jobs to the outermost job (instance_jobs.sh); one that runs is asked.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from typing import Any, Iterable, Iterator, Mapping

import state
from job_record import USAGE_ATTRIBUTES, annotation, record
from state import parse_idset, to_idset

#: Where the ended instances inside of a job have told of their jobs
TOLD_KEY = "guest.minicluster_jobs"
#: The newest jobs inside of one job that are kept; nodes that are asked, and seconds for their answers
INNER_JOBS, INSTANCE_NODES, INSTANCE_SECONDS = 1000, 256, 10.0
#: Flux's counts of jobs (job-list.job-stats) under our names
COUNTS = {"successful": "completed", "failed": "failed", "canceled": "canceled", "timeout": "timeout"}
#: Of one that was killed before it told
UNKNOWN = {"total": None, **dict.fromkeys(COUNTS.values())}


def uri_of(job: Mapping[str, Any]) -> str:
    """Return the address of the instance that a job is; "" for one that is none."""
    return str(annotation(job, "user", "uri") or "")


def told_inside(handle: Any, jobs: Iterable[Mapping[str, Any]], *, asks: bool = False) -> dict[int, str]:
    """Return what the ended instances inside of jobs have told, by the ids of these jobs.

    With ``asks`` it is also what those that run say now.
    """
    instances = [job for job in jobs if uri_of(job)]
    wanted = ({"id": job["id"], "keys": [TOLD_KEY], "flags": 0} for job in instances)
    # all are asked before the first answer
    futures = [handle.rpc("job-info.lookup", each) for each in wanted]
    told: dict[int, str] = {}
    for job, future in zip(instances, futures):
        with suppress(OSError):  # without a word of any
            told[job["id"]] = str(future.get()[TOLD_KEY])
    if asks and instances:
        with suppress(OSError, subprocess.TimeoutExpired):
            for number, text in _answers(instances).items():
                told[number] = told.get(number, "") + text
    return told


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


def lines_inside(text: str) -> tuple[Mapping[str, int], list[str]]:
    """Return the counts of all jobs that instances have told of, and the lines about the newest ones."""
    stats, listed = _parsed(text)
    ended = sorted(listed, key=lambda each: (each[1].get("t_inactive") or float("inf"), each[1]["id"]))[-INNER_JOBS:]
    lines = []
    for path, job in ended:
        inner = counts_of(stats, path) or None
        # ids of other instances are the same numbers
        lines.append(json.dumps({**record(job, path, None), "number": None, "inner": inner}) + "\n")
    return {**counts_of(stats, ""), "kept": len(lines)}, lines


def records_inside(handle: Any) -> Iterator[dict[str, Any]]:
    """Yield the records of the jobs inside of jobs that run. Raises OSError."""
    for text in told_inside(handle, state.jobs(handle, "running", USAGE_ATTRIBUTES), asks=True).values():
        yield from map(json.loads, lines_inside(text)[1])


def _parsed(text: str) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
    from flux.job import JobID

    stats: dict[str, Any] = {}
    by_path: dict[str, Any] = {}
    for line in text.split("\n"):
        with suppress(ValueError, KeyError, TypeError, AttributeError):  # anybody can write there
            ids, _, rest = line.partition(" ")
            path = "/".join(JobID(name).f58plain for name in ids.split("/"))
            told = json.loads(rest)
            if "job_states" in told:
                stats[path] = {name: int(told[key]) for key, name in COUNTS.items()}
                stats[path]["total"] = int(told["job_states"]["total"]) + int(told.get("inactive_purged", 0))
            else:
                by_path[f"{path}/{JobID(told['id']).f58plain}"] = {**told, "state": int(told["state"])}
    return stats, [*by_path.items()]


def counts_of(stats: Mapping[str, Mapping[str, int]], path: str) -> Mapping[str, int]:
    """Return the counts of all jobs below a path; {} where nothing was told."""
    below = [each for of, each in stats.items() if f"{of}/".startswith(f"{path}/" if path else "")]
    return {key: sum(each[key] for each in below) for key in ("total", *COUNTS.values())} if below else {}


def lines_with_inner(job: Mapping[str, Any], line: str, told: dict[int, str]) -> Iterator[str]:
    """Yield the lines about the jobs inside of a job, and then its own, which has their counts."""
    if job["id"] in told:
        counts, lines = lines_inside(told[job["id"]])
        yield from lines
        line = json.dumps({**json.loads(line), "inner": counts}) + "\n"
    elif uri_of(job) and json.loads(line)["state"] == "INACTIVE":
        line = json.dumps({**json.loads(line), "inner": UNKNOWN}) + "\n"
    yield line
