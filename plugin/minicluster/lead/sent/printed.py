"""printed.py NAME JOB [follow]: prints what a job of the MiniCluster NAME has printed; with ``follow`` until its end.

JOB is an id in any of Flux's forms. Each stream goes to its own. If output goes to a file, a line says to which, and
what is in it follows. A line says that a job has not begun. Ends with 1 and a line if there is no such job, or no
output of it any more.
Given to `flux python -c` by `minicluster output`. Runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Iterator, Mapping

import flux
from flux import constants
from flux.hostlist import Hostlist
from flux.job import JobID
from flux.job._wrapper import _RAW
from flux.job.event import JobEventWatchFuture
from history import History, folder
from output_events import OUTPUT_KEY, Event, data_of, events, lookup

#: Prints a file from a byte on; a path that is no file, such as /dev/null, has nothing
TAIL_FILE = 'if [ -f "$1" ]; then exec tail -c "+$2" "$1"; fi; [ -e "$1" ]'

#: Between two looks at a file that grows
FOLLOW_SECONDS = 0.5


def first_rank(resources: Mapping[str, Any]) -> str:
    """Return the rank of the first node of an R (RFC 20)."""
    match = re.search(r"\d+", resources["execution"]["R_lite"][0]["rank"])
    assert match, "an R_lite has ranks"
    return match[0]


class OutputFile:
    """A file that a job writes its output to, on the first of its nodes: read through Flux, and copied to a stream."""

    def __init__(self, rank: str, path: str, stream: IO[bytes]) -> None:
        self.rank, self.path, self.stream, self.copied = rank, path, stream, 0
        self._ended = threading.Event()
        self._follower = threading.Thread(target=self._follow, daemon=True)

    def follow(self) -> None:
        """Copy what is in it, and what comes."""
        self._follower.start()

    def finish(self) -> bool:
        """Copy what is left of it, when nobody writes to it any more; return whether it could be read."""
        self._ended.set()
        if self._follower.ident:
            self._follower.join()
        return self._copy()

    def _follow(self) -> None:
        # `flux exec` holds back what a `tail -f` prints
        while not self._ended.wait(FOLLOW_SECONDS):
            self._copy()

    def _copy(self) -> bool:
        line = ["flux", "exec", "--noinput", "-r", self.rank, "/bin/sh", "-c", TAIL_FILE, "sh", self.path]
        line.append(str(self.copied + 1))
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # noqa: S603 - words, no shell
        pipe = process.stdout
        assert pipe, "it was started with a pipe"
        for data in iter(lambda: pipe.read1(1 << 16), b""):  # type: ignore[attr-defined]
            self.stream.write(data)
            self.stream.flush()
            self.copied += len(data)
        return process.wait() == 0


class Printer:
    """Prints the output of a job."""

    def __init__(self, handle: Any, job: Any, follow: bool) -> None:
        self.handle, self.job, self.follow = handle, job, follow
        self.files = {}  # type: dict[str, OutputFile]

    def print(self, event: Event) -> None:
        """Print what an event of the output has. Raises OSError."""
        context = event.get("context", {})
        if event["name"] == "redirect" and context["path"] not in self.files:
            self._open(context["path"], context["stream"])
        for stream, data in data_of(event["name"], context):
            file = _stream(stream)
            file.write(data)
            file.flush()

    def _open(self, path: str, stream: str) -> None:
        """Say where a file is, and print what is in it. Raises OSError."""
        cwd = json.loads(lookup(self.handle, self.job, "jobspec"))["attributes"]["system"].get("cwd", "/")
        resources = json.loads(lookup(self.handle, self.job, "R"))
        host = Hostlist(resources["execution"]["nodelist"])[0]
        place = str(Path(cwd, path))
        say(f"the output of job {self.job.f58plain} goes to the file {place} of {host}")
        self.files[path] = file = OutputFile(first_rank(resources), place, _stream(stream))
        if self.follow:
            file.follow()

    def finish(self) -> str:
        """Print the rest of the files; return which can't be read, or ""."""
        lost = [file.path for file in self.files.values() if not file.finish()]
        return f"it can't be read there, or is gone: {', '.join(lost)}" if lost else ""


def _stream(name: str) -> IO[bytes]:
    return (sys.stdout if name == "stdout" else sys.stderr).buffer


def forgotten(name: str, job: Any) -> str:
    """Return why there is nothing of a job."""
    # a JobID is a number, but writes itself as ƒ…
    record = History(folder()).record(int(job))
    if record is None:
        return f"{name} has no job {job.f58plain}: `minicluster jobs {name}` lists them"
    code = "" if record["exit_code"] is None else f" with exit code {record['exit_code']}"
    what = f"the output of job {record['id']} ({record['name']}), which ended {record['result']}{code}, is gone"
    return f"{what}: Flux keeps only that of the last jobs; flux.keptJobs says how many"


def told_of(handle: Any, job: Any) -> set[str]:
    """Return the names of the events of a job. Raises FileNotFoundError if Flux has forgotten it."""
    return {event["name"] for event in events(lookup(handle, job, "eventlog"))}


def watched(handle: Any, job: Any) -> Iterator[Event]:
    """Yield the events of the output of a job until its end. Raises OSError."""
    # between the start of a job and that of its output there is none, and event_watch would end
    flags = constants.FLUX_JOB_EVENT_WATCH_WAITCREATE
    yield from iter(JobEventWatchFuture(_RAW.event_watch(handle, int(job), OUTPUT_KEY, flags)).get_event, None)


def show(handle: Any, name: str, job: Any, follow: bool) -> str:
    """Print the output of a job; return why it can't be printed, or "". Raises OSError."""
    try:
        told = told_of(handle, job)
    except FileNotFoundError:
        return forgotten(name, job)
    live = follow and "clean" not in told
    printer, has_begun = Printer(handle, job, live), False
    # of a job that has not begun there is nothing
    with suppress(FileNotFoundError):
        for event in watched(handle, job) if live else events(lookup(handle, job, OUTPUT_KEY)):
            printer.print(event)
            has_begun = True
    if not has_begun:
        told = told_of(handle, job)
        if "start" not in told:
            say(f"job {job.f58plain} never ran" if "clean" in told else f"job {job.f58plain} has not begun yet")
    return printer.finish()


def say(text: str) -> None:
    """Tell a person something."""
    print(f"minicluster: {text}", file=sys.stderr, flush=True)


def main(name: str, text: str, *words: str) -> str:
    """Do it; return why it can't be done, or ""."""
    # at once, and not after the next event
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        job = JobID(text)
    except ValueError:
        return f"{text!r} is not a job's id: `minicluster jobs {name}` lists them"
    try:
        return show(flux.Flux(), name, job, "follow" in words)
    except BrokenPipeError:
        os._exit(1)  # nobody reads; a flush would complain
    except OSError as error:
        return f"the output of job {job.f58plain} can't be read: {error.strerror or error}"


if __name__ == "__main__":
    problem = main(*sys.argv[1:])
    sys.exit(f"minicluster: {problem}" if problem else 0)
