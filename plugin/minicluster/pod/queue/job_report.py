"""job_report.py [FOLDER END [PATH]]: the jobs of the queue, a line of JSON for each; those that have ended come first.

Without words it prints them, and a line with the number of those whose records are gone: `minicluster jobs`
sends it to the lead. With words the lead's broker runs it when the
jobs have ended, before Flux's own rc3. It writes FOLDER/report, which the entrypoint prints, the file PATH, and to
FOLDER/report.purged how many are missing. After a stop, END are the seconds that the broker's end has.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator

from history import History, folder
from job_record import REPORT_ATTRIBUTES, line, user_attributes
from state import job_counts, jobs

#: Seconds for a report of a lead that was not told to stop, and for one that is asked for
REPORT_SECONDS, ASKED_SECONDS = 60.0, 10.0


def report(handle: Any, seconds: float, put: Callable[[str], object]) -> int:
    """Put the line of each job, and return how many jobs are missing. Raises OSError.

    The lines of the history are not held in memory: they may be 100,000.
    """
    # a job that ends between the two requests is in both answers
    found = {job["id"]: job for states in ("active", "inactive") for job in jobs(handle, states, REPORT_ATTRIBUTES)}
    missing = job_counts(handle)["purged"]
    for number, text in History(folder()):
        missing -= number not in found
        found.pop(number, None)
        put(text)
    users = user_attributes(handle, sorted(found), seconds)
    for number, job in sorted(found.items()):
        put(line(job, users.get(number)))
    return max(0, missing)


def write(handle: Any, seconds: float, path: Path) -> int:
    """Write the report to a file, and return how many jobs are missing. Raises OSError."""
    with _replaced(path) as new, new.open("w", encoding="ascii") as file:
        return report(handle, seconds, file.write)


@contextmanager
def _replaced(path: Path) -> Iterator[Path]:
    """Give the path of a new file that takes a file's place at the end of the block. Raises OSError."""
    new = path.with_name(f"{path.name}.new")
    path.parent.mkdir(parents=True, exist_ok=True)
    yield new
    new.replace(path)


def main(run: Path, end: float, path: str = "") -> str:
    """Write the report of a lead whose broker ends; return what failed, "" if nothing did."""
    # the archive comes after the report, and must not go short
    limit = max(2.0, end / 2) if (run / "stopping").exists() else REPORT_SECONDS
    signal.setitimer(signal.ITIMER_REAL, limit)
    import flux

    try:
        missing = write(flux.Flux(), limit / 2, run / "report")
        (run / "report.purged").write_text(f"{missing}\n", encoding="ascii")
        if path:
            with _replaced(Path(path)) as new:
                shutil.copyfile(run / "report", new)
    except OSError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    if sys.argv[1:]:
        directory, limit_of_end, *file_path = sys.argv[1:]
        sys.exit(main(Path(directory), float(limit_of_end), *file_path) or 0)
    import flux

    print(json.dumps({"purged": report(flux.Flux(), ASKED_SECONDS, sys.stdout.write)}))
