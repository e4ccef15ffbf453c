"""explain.py ID [shown]: why a job waits, where it runs or how it ended, as JSON.

``job`` is its record (job_record.py), {} if there is no such job; ``waits`` the reason of one that waits, else "";
``needs`` the sizes that would give it nodes, by group, "" for the cluster's own; ``grows`` the most nodes that the
agent gives a group by itself; ``said`` the last lines of its output, ``again`` the job that runs it once more, or "",
``quiet_since`` when one of several tasks that has no limit of time printed last, or null, ``starts`` when one that
waits will start, and after which job, or null, ``warned`` what flux.idleJobs says of one that runs, or the jobs that
were stopped for one that waits, and ``now`` the lead's time. With ``shown`` also its ``command``, and the end of its
``output``, for a page.
Given to `flux python -c` by why.py and picture/pages.py. Runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Mapping

import flux
from flux.job import JobID, job_kvs_lookup
from flux.job.list import job_list_id
from history import History, folder
from job_record import REPORT_ATTRIBUTES, annotation, copies_after, record, user_of
from output_events import OUTPUT_KEY, data_of, events, lookup
from start_times import Start, estimate
from used_now import used_now
from waiting import WAITING_STATES, autoscaled, reasons, unmet_of

#: Lines of the output of a job that has failed, and the most characters of each
SAID_LINES, LINE_CHARACTERS = 5, 200
#: The end of an output that a page shows; characters of a command
END_BYTES, SHOWN_COMMAND_CHARACTERS = 20_000, 4000
#: Between the end of a job and a start that is at that end
ESTIMATE_SECONDS = 2.0


def listed(handle: Any, job: int) -> dict[str, Any] | None:
    """Return the attributes of a job that Flux has, None for another one."""
    try:
        attributes: dict[str, Any] = job_list_id(handle, job, REPORT_ATTRIBUTES).get_job()
    except OSError:
        return None
    return {**attributes, "id": job}


def printed(handle: Any, job: int) -> tuple[bytes, float | None]:
    """Return what a job has printed, and when it printed last; nothing where Flux has no output of it."""
    try:
        output = events(lookup(handle, job, OUTPUT_KEY))
    except OSError:
        return b"", None
    pieces, last = [], None
    for event in output:
        for _, data in data_of(event["name"], event.get("context", {})):
            pieces.append(data)
            last = event["timestamp"]
    return b"".join(pieces), last


def last_lines(handle: Any, job: int) -> list[str]:
    """Return the last lines that a job printed, none where Flux has no output of it."""
    said = printed(handle, job)[0].decode(errors="replace")
    return [shortened(line, LINE_CHARACTERS) for line in said.split("\n") if line.strip()][-SAID_LINES:]


def shortened(text: str, most: int) -> str:
    """Return a text, which ends with … where it had more than so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def copy_of(handle: Any, job: Mapping[str, Any]) -> str:
    """Return the job that runs this one again, "" without one. Raises OSError."""
    copy = copies_after(handle, job["id"]).get(JobID(job["id"]).f58plain)
    return JobID(copy).f58plain if copy else ""


def start_of(handle: Any, job: Mapping[str, Any], *, is_guess: bool) -> dict[str, Any] | None:
    """Return when a job will start, as `Start.told` has it, by the scheduler or else by the limits; None if unknown.

    ``job`` is its record.
    """
    from state import jobs

    at = job["t_estimate"]
    if not at:
        start = None if is_guess else (estimate(handle) or {}).get(job["number"])
        return start.told() if start else None
    running = jobs(handle, "run", ["expiration"])
    # the scheduler's limits begin some milliseconds before the job's
    ending = [one["id"] for one in running if abs(one.get("expiration", 0.0) - at) < ESTIMATE_SECONDS]
    return Start(at, ending[0] if ending else 0).told()


def explained(handle: Any, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is known of a job, and its jobspec, {} where Flux has none. Raises OSError."""
    from state import nodes

    job = listed(handle, number)
    explanation: dict[str, Any] = {"job": {}, "waits": "", "needs": {}, "said": [], "again": "", "quiet_since": None}
    explanation.update(starts=None, grows={}, warned="", now=time.time())
    if job is None:
        return {**explanation, "job": History(folder()).record(number) or {}}, {}
    jobspec = (job_kvs_lookup(handle, number, keys=["jobspec"]) or {}).get("jobspec") or {}
    user = user_of(jobspec) if jobspec else None
    explanation["job"] = shown = record(job, JobID(number).f58plain, user)
    if shown["state"].lower() in WAITING_STATES:
        explanation["waits"] = reasons(handle, [number]).get(number, "")
        explanation["warned"] = str(annotation(job, "user", "minicluster_stops") or "")
        if jobspec and shown["state"] == "SCHED":
            unmet = unmet_of(handle, jobspec, nodes(handle))
            explanation.update(needs=unmet.sizes(), grows=autoscaled())
            if explanation["waits"].startswith("waits") and not explanation["needs"]:
                explanation["starts"] = start_of(handle, shown, is_guess=unmet.is_guess)
    elif shown["state"] == "RUN":
        noted = annotation(job, "user", "minicluster_idle") or {}
        shown["usage"] = used_now(handle, job)
        explanation["warned"] = str(noted.get("why") or "")
        if (shown["ntasks"] or 0) > 1 and not jobspec.get("attributes", {}).get("system", {}).get("duration"):
            explanation["quiet_since"] = printed(handle, number)[1]
    elif shown["result"] not in (None, "COMPLETED"):
        explanation.update(said=last_lines(handle, number), again=copy_of(handle, job))
    return explanation, jobspec


def main(text: str, *shown: str) -> dict[str, Any]:
    """Return what is known of a job. Raises OSError; ValueError for a text that is no id."""
    handle, number = flux.Flux(), int(JobID(text))
    explanation, jobspec = explained(handle, number)
    if shown:
        words = [str(word) for task in jobspec.get("tasks", ())[:1] for word in task["command"]]
        explanation["command"] = shortened(" ".join(words), SHOWN_COMMAND_CHARACTERS)
        explanation["output"] = printed(handle, number)[0][-END_BYTES:].decode(errors="replace")
    return explanation


if __name__ == "__main__":
    try:
        print(json.dumps(main(*sys.argv[1:])))
    except ValueError:
        print(json.dumps({"error": "no id"}))
