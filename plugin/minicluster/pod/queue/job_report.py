"""job_report.py [FOLDER END [PATH]]: the jobs of the queue, a line of JSON for each.

Without words it prints them, and a line with the number of those whose records Flux no longer has: `minicluster jobs`
sends it to the lead. With words the lead's broker runs it when the
jobs have ended, before Flux's own rc3. It writes FOLDER/report, which the entrypoint prints, the file PATH, and to
FOLDER/report.purged how many are missing. After a stop, END are the seconds that the broker's end has.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any, Mapping, Sequence

from state import exit_code, job_counts, jobs

#: The attributes of a job that are asked of Flux, and reported under the same names
TIMES = ("t_submit", "t_run", "t_cleanup", "t_inactive")
SAME = (*TIMES, "ntasks", "urgency", "queue")
REPORT_ATTRIBUTES = ["name", "nodelist", "ranks", "state", "result", "waitstatus", *SAME]
#: Flux's numbers of states and results (flux_job_state_t, flux_job_result_t)
STATE_NAMES = {1: "NEW", 2: "DEPEND", 4: "PRIORITY", 8: "SCHED", 16: "RUN", 32: "CLEANUP", 64: "INACTIVE"}
RESULT_NAMES = {1: "COMPLETED", 2: "FAILED", 4: "CANCELED", 8: "TIMEOUT"}
#: Jobspecs that are asked for at once
BATCH_JOBS = 500
#: Seconds for a report of a lead that was not told to stop, and for one that is asked for
REPORT_SECONDS, ASKED_SECONDS = 60.0, 10.0


def record(job: Mapping[str, Any], name: str, user: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what is reported of a job; ``name`` is its id as a text. What a job doesn't have is None."""
    status = job.get("waitstatus")
    return {
        "id": name,
        "number": job["id"],
        "name": job.get("name", ""),
        "state": STATE_NAMES.get(job["state"], str(job["state"])),
        "result": RESULT_NAMES.get(job.get("result", 0)),
        "exit_code": None if status is None else exit_code(status),
        "nodes": job.get("nodelist") or None,
        "ranks": job.get("ranks", "").strip("[]") or None,
        # Flux leaves out a time that has not come, or gives 0
        **{key: job.get(key) if key == "urgency" else job.get(key) or None for key in SAME},
        "user": user,
    }


def user_attributes(handle: Any, ids: Sequence[int], seconds: float) -> dict[int, Mapping[str, Any]]:
    """Return the user's attributes of jobs, as many as can be looked up in some seconds. Raises OSError."""
    from flux.job import JobKVSLookup

    end = time.monotonic() + seconds
    found: dict[int, Mapping[str, Any]] = {}
    for first in range(0, len(ids), BATCH_JOBS):
        if time.monotonic() > end:
            break
        for job in JobKVSLookup(handle, list(ids[first : first + BATCH_JOBS]), keys=["jobspec"]).data():
            found[job["id"]] = job["jobspec"]["attributes"].get("user") or {}
    return found


def report(handle: Any, seconds: float) -> str:
    """Return the lines about all jobs, ordered by id. Raises OSError."""
    from flux.job import JobID

    # a job that ends between the two requests is in both answers
    found = {job["id"]: job for states in ("active", "inactive") for job in jobs(handle, states, REPORT_ATTRIBUTES)}
    users = user_attributes(handle, sorted(found), seconds)
    records = (record(job, JobID(number).f58plain, users.get(number)) for number, job in sorted(found.items()))
    return "".join(json.dumps(each) + "\n" for each in records)


def replace(path: Path, text: str) -> None:
    """Replace a file as a whole. Raises OSError."""
    new = path.with_name(f"{path.name}.new")
    path.parent.mkdir(parents=True, exist_ok=True)
    new.write_text(text, encoding="ascii")
    new.replace(path)


def write(handle: Any, seconds: float, *paths: str) -> str:
    """Write the report to files; return why that failed, "" if it didn't."""
    try:
        text = report(handle, seconds)
        for path in paths:
            replace(Path(path), text)
    except OSError as error:
        return str(error)
    return ""


def main(folder: Path, end: float, path: str = "") -> str:
    """Write the report of a lead whose broker ends; return what failed, "" if nothing did."""
    # the archive comes after the report, and must not go short
    limit = max(2.0, end / 2) if (folder / "stopping").exists() else REPORT_SECONDS
    signal.setitimer(signal.ITIMER_REAL, limit)
    import flux

    handle = flux.Flux()
    try:
        replace(folder / "report.purged", f"{job_counts(handle)['purged']}\n")
    except OSError as error:
        return str(error)
    return write(handle, limit / 2, str(folder / "report"), *([path] if path else []))


if __name__ == "__main__":
    if sys.argv[1:]:
        run, seconds, *paths = sys.argv[1:]
        sys.exit(main(Path(run), float(seconds), *paths) or 0)
    import flux

    handle = flux.Flux()
    sys.stdout.write(report(handle, ASKED_SECONDS))
    print(json.dumps({"purged": job_counts(handle)["purged"]}))
