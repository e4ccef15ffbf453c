"""Writes the record of each job that ends to the history, then lets Flux forget those beyond its limit.

By itself Flux forgets 50 jobs a second, and more may end. Then it removes what Flux leaves behind of them, and shortens
the log of the lead's broker, which is mostly about jobs. A thread of undrainer.py.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, Mapping

from changes import Changes, pause_after
from history import History, HistoryError, folder
from inner_jobs import keep_answers, kept_file, lines_with_inner, told_inside
from job_record import REPORT_ATTRIBUTES, line, user_attributes, user_of
from kvs_cleanup import Compaction, remove_empty_directories
from log import Problems, shorten, tell
from losses import Retries
from put_back import Copies
from state import jobs

#: Seconds for which Flux may list a job later than one that ended after it
OVERLAP_SECONDS = 5.0
#: Seconds between two looks without a change, and at least between a change and the next look, which doubles each time
#: without a change: Flux may list an end later than it tells it
UNTOLD_SECONDS, BUSY_SECONDS = 60.0, 1.0
#: Seconds between two questions to the instances that run, at least
INSIDE_SECONDS = 10.0
#: Jobs of one look, and seconds to look up their attributes where no event told these
LOOK_JOBS, LOOKUP_SECONDS = 500, 60.0
#: File with what state.py is to show, and the broker's log
PROBLEM_FILE, LOG_FILE = "history.problem", "broker.log"
#: Records that Flux removes at a request, at most; jobs after which their empty directories are removed
PURGE_JOBS, LEFTOVER_JOBS = 100, 500


class Ends(Changes):
    """Waits for the ends of jobs; notes the user's attributes of those that come, and which may be instances."""

    def __init__(self, handle: Any) -> None:
        super().__init__(handle, ["ends"])
        self.users: dict[int, Mapping[str, Any]] = {}
        self.instances: set[int] = set()  #: that have not ended

    def read(self, stream: Any) -> bool:
        """Note what an event tells; say whether a job has ended, or the first instance has come. Raises OSError."""
        told, had_instances = stream.get(), bool(self.instances)
        jobspec = told.get("jobspec")
        if jobspec:
            self.users[told["id"]] = user_of(jobspec)
        # before flux-core 0.61 each event is in another place, and before 0.63 a job may be anything
        events = [(event.get("id", told.get("id")), event.get("entry", event)["name"]) for event in told["events"]]
        ended = {job for job, name in events if name == "clean"}
        if not jobspec or jobspec["tasks"][0]["command"][0].rpartition("/")[2] == "flux":
            self.instances.update(job for job, _ in events)
        self.instances -= ended
        return bool(ended or (self.instances and not had_instances))


class Recorder:
    """Records the jobs that have ended since the last look."""

    def __init__(self, handle: Any, history: History, users: dict[int, Mapping[str, Any]], copies: Copies) -> None:
        """Take attributes that are known; those of recorded jobs are removed."""
        self.handle, self.history, self.users = handle, history, users
        #: The last jobs of the history, and when they ended; jobs that are not in it yet
        last = history.last()
        self.known = {number: record["t_inactive"] for number, record in last.items()}
        #: When these began to run, or None: a killed lead may have saved less than it has recorded, and then Flux lets
        #: them end once more
        self.before = {number: record.get("t_run") for number, record in last.items()}
        self.waiting: list[dict[str, Any]] = []
        self.count = 0  #: jobs that were recorded
        self.retries = Retries(handle, copies)
        self.cleared = -LEFTOVER_JOBS  #: their number when leftovers were removed; a former lead may have left some

    def look(self) -> bool:
        """Record jobs, the oldest first; say whether more wait. Raises OSError, HistoryError."""
        self.waiting = self.waiting or self._ended()
        some, rest = self.waiting[:LOOK_JOBS], self.waiting[LOOK_JOBS:]
        unknown = [job["id"] for job in some if job["id"] not in self.users]
        self.users.update(user_attributes(self.handle, unknown, LOOKUP_SECONDS))
        for job in some:
            self.retries.look(job, self.users.get(job["id"]))
        if some:
            told = told_inside(self.handle, some)
            lines = [[*lines_with_inner(job, line(job, self.users.get(job["id"])), told)] for job in some]
            # the end has those that are looked up
            self.history.append([one for each in lines for one in each[:-1]] + [each[-1] for each in lines])
            for number in told:
                with suppress(OSError):
                    kept_file(number).unlink()
            self._forget(some)
            self.count += len(some)
        self.waiting = rest
        if some and not rest:
            purge(self.handle)
            if self.count - self.cleared >= LEFTOVER_JOBS:
                self.cleared = self.count
                remove_empty_directories(self.handle)
        return bool(rest)

    def _ended(self) -> list[dict[str, Any]]:
        """Return the jobs that are not in the history, the oldest first. Raises OSError."""
        since = max(self.known.values(), default=OVERLAP_SECONDS) - OVERLAP_SECONDS
        unrecorded = [
            job for job in jobs(self.handle, "inactive", REPORT_ATTRIBUTES, since) if not self._is_recorded(job)
        ]
        return sorted(unrecorded, key=lambda job: float(job["t_inactive"]))

    def _is_recorded(self, job: Mapping[str, Any]) -> bool:
        """Say whether the history has a job, or this run of it."""
        if job["id"] in self.before:
            return self.before[job["id"]] == (job.get("t_run") or None)
        return job["id"] in self.known

    def _forget(self, recorded: list[dict[str, Any]]) -> None:
        """Keep in mind only which jobs Flux may list again."""
        self.known.update((job["id"], job["t_inactive"]) for job in recorded)
        since = recorded[-1]["t_inactive"] - OVERLAP_SECONDS
        self.known = {number: ended for number, ended in self.known.items() if ended >= since}
        for job in recorded:
            self.users.pop(job["id"], None)
            self.before.pop(job["id"], None)


def purge(handle: Any) -> None:
    """Let Flux forget the oldest jobs that have ended, beyond its own limit. Raises OSError."""
    limit = handle.rpc("config.get").get().get("job-manager", {}).get("inactive-num-limit", -1)
    wanted = {"age_limit": -1.0, "num_limit": limit, "batch": PURGE_JOBS, "force": True}
    while limit >= 0 and handle.rpc("job-manager.purge", wanted).get()["count"] == PURGE_JOBS:
        pass


def keep_records(handle: Any, ends: Ends, copies: Copies) -> None:
    """Record jobs until the broker ends: OSError. Takes a handle that nothing else uses."""
    recorder, told = Recorder(handle, History(folder()), ends.users, copies), ""
    note, compaction, failed = Problems(folder().with_name(PROBLEM_FILE)), Compaction(handle), ""
    most, next_question = BUSY_SECONDS, 0.0
    while True:
        used, has_more, problem = time.thread_time(), False, ""
        try:
            has_more = recorder.look()
        except HistoryError as error:
            problem = str(error)
        told = tell(problem, told)
        failed = tell(compaction.look(recorder.count), failed)
        note.write(filter(None, [problem]))
        shorten(folder().with_name(LOG_FILE))
        if ends.instances and (asked := time.monotonic()) >= next_question:
            keep_answers(handle)
            next_question = time.monotonic() + max(INSIDE_SECONDS, pause_after(time.monotonic() - asked))
        pause, begin = pause_after(time.thread_time() - used), time.monotonic()
        longest = max(pause, min(most, INSIDE_SECONDS) if ends.instances else most)
        ends.wait(pause if has_more else max(BUSY_SECONDS, pause), pause if has_more else longest)
        is_told = has_more or time.monotonic() < begin + longest
        most = BUSY_SECONDS if is_told else min(2 * most, UNTOLD_SECONDS)
