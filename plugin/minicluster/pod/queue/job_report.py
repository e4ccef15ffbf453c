"""job_report.py MOST, or FOLDER END [PATH]: the jobs, a line of JSON for each; those that have ended come first.

With MOST it prints the active jobs and the last MOST of those that have ended, and a line with the numbers of earlier
ones and of those whose records are gone: `minicluster jobs` sends it to the lead. With other words the lead's broker
runs it when the jobs have ended, before Flux's own rc3. It writes FOLDER/report, which the entrypoint prints, the file
PATH, and to FOLDER/report.purged how many are missing. After a stop, END are the seconds that the broker's end has.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import itertools
import json
import shutil
import signal
import sys
import time
from collections import deque
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, Mapping

from history import History, folder
from inner_jobs import lines_with_inner, told_inside
from job_record import REPORT_ATTRIBUTES, line, user_attributes
from state import job_counts, jobs

#: Seconds for a report of a lead that was not told to stop, and for one that is asked for
REPORT_SECONDS, ASKED_SECONDS = 60.0, 10.0


class JobReport:
    """The lines of all jobs: first those that have ended, in that order."""

    def __init__(self, handle: Any, seconds: float) -> None:
        """Take the time for attributes that must be looked up. Raises OSError."""
        self.handle, self.end = handle, time.monotonic() + seconds
        # in this order: a job that ends between the two requests is in both answers
        active, inactive = (jobs(handle, state, REPORT_ATTRIBUTES) for state in ("active", "inactive"))
        self.inactive = {job["id"]: job for job in inactive}
        self.rest = {job["id"]: job for job in active if job["id"] not in self.inactive}
        #: How many jobs are missing; known after the last line
        self.missing = job_counts(handle)["purged"]

    def ended(self) -> Iterator[str]:
        """Yield the lines of jobs that have ended. The history is not held in memory: it may have 90,000."""
        for number, text in History(folder()):
            if number is None:  # one inside of another
                yield text
                continue
            self.missing -= number not in self.inactive
            for kept in (self.inactive, self.rest):
                # a job whose end a killed lead had not saved may run again
                if number in kept and (kept[number].get("t_run") or None) == json.loads(text).get("t_run"):
                    del kept[number]
            yield text
        self.missing = max(0, self.missing)
        yield from self._lines(self.inactive, are_active=False)

    def active(self) -> Iterator[str]:
        """Yield the lines of the other jobs, by id."""
        yield from self._lines(self.rest, are_active=True)

    def _lines(self, records: Mapping[int, Mapping[str, Any]], *, are_active: bool) -> Iterator[str]:
        users = user_attributes(self.handle, sorted(records), self.end - time.monotonic())
        told = told_inside(self.handle, records.values(), asks=are_active)
        for number, job in sorted(records.items()):
            yield from lines_with_inner(job, line(job, users.get(number)), told)


def write(handle: Any, seconds: float, path: Path) -> int:
    """Write the report to a file, and return how many jobs are missing. Raises OSError."""
    report = JobReport(handle, seconds)
    with _replaced(path) as new, new.open("w", encoding="ascii") as file:
        file.writelines(report.ended())
        file.writelines(report.active())
    return report.missing


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


def show(handle: Any, most: int) -> None:
    """Print all jobs, of those that have ended the last ``most``, and how many more there were. Raises OSError."""
    report, numbers = JobReport(handle, ASKED_SECONDS), itertools.count()
    last = deque((text for text, _ in zip(report.ended(), numbers)), maxlen=most)
    sys.stdout.writelines(last)
    sys.stdout.writelines(report.active())
    print(json.dumps({"purged": report.missing, "earlier": next(numbers) - len(last), "now": time.time()}))


if __name__ == "__main__":
    if sys.argv[2:]:
        directory, limit_of_end, *file_path = sys.argv[1:]
        sys.exit(main(Path(directory), float(limit_of_end), *file_path) or 0)
    import flux

    show(flux.Flux(), int(sys.argv[1]))
