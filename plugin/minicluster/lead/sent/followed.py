"""How remote.py follows jobs to their ends: by one stream of the events of all jobs, and not by one for each job.

A module of that program: runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Callable

from described import calls_function, marked
from flux import constants
from flux.job import JobID, event_watch_async
from job_record import TIMES, USAGE_ATTRIBUTES, usage
from output_events import KEPT_BYTES, Event, Tail, events
from recorded import GONE, Lost, Recorded

if TYPE_CHECKING:
    from replies import Replies

#: How the key of a request begins that is for a job of any client
ANY_JOB = "any-"
#: Where the job of a function has its result (call_function.py)
RESULT_KEY = "guest.minicluster.result"
#: Events of a job that tell how it goes
TOLD = ("alloc", "start", "finish", "exception", "clean")
#: What a note says of a job that was cancelled and goes on as another one (requeue.py, recovery.py)
GOES_ON_AS = re.compile(r"runs again as (\S+)$")
#: What stands for the begin of a long output
DROPPED = "minicluster: the first {} bytes of this output were dropped; lines() of the future has all of it\n"
#: Seconds for which Flux's list of jobs may be behind their events: before flux-core 0.63 it looks up where each ran
BEHIND_SECONDS = 5.0
#: Pause between two looks at a list that is behind
LIST_PAUSE_SECONDS = 0.05
#: Seconds until the events of a job from before are read again; each further pause is twice as long
AGAIN_SECONDS = 1.0


class Followed:
    """One job."""

    def __init__(self, key: str, job: int, reply: Replies, calls: bool) -> None:
        self.key, self.job, self.reply, self.calls = key, job, reply, calls
        self.end: dict[str, Any] = {"status": None, "exception": None, "output": [], "usage": None}
        self.waits: str | None = ""  # the reason that the client knows; None once it no longer waits
        self.has_started = False
        self.tail = Tail(KEPT_BYTES)
        reply(key=key, id=JobID(job).f58)

    def take(self, event: Event) -> bool:
        """Take an event, which may come twice; return whether the job is over, and it is known how it ended."""
        name, context = event["name"], event.get("context", {})
        if name in ("alloc", "exception"):
            self.waits = None
        if name == "start" and not self.has_started:
            self.has_started = True
            self.reply(key=self.key, started=True)
        elif name == "finish":
            self.end["status"] = context["status"]
        elif name == "exception" and context["severity"] == 0 and not self.end["exception"]:
            self.end["exception"] = {"type": context["type"], "note": context.get("note", "")}
        return name == "clean" and (self.end["status"] is not None or bool(self.end["exception"]))

    def copy(self) -> str:
        """Return the job that runs this one again as its note says, "" if it names none."""
        return match[1] if (match := GOES_ON_AS.search(self.note)) else ""

    def has_lost_node(self) -> bool:
        """Say whether it ended so that the lead may put it back."""
        try:
            from losses import LOSS_NOTES  # of the lead's own version
        except ImportError:
            return False
        return self.note.startswith(LOSS_NOTES)

    @property
    def note(self) -> str:
        """Why it ended, "" for its own exit code."""
        return str((self.end["exception"] or {}).get("note", ""))

    def take_output(self, future: Any) -> None:
        """Take a part of the output; at its end, reply with the job's end."""
        try:
            event = future.get_event()
        except OSError:
            event = None  # a job that never ran has no output
            if self.end["status"] is not None:
                self.end["output"].append(("stderr", GONE))
        if event is not None:
            self.tail.take(event.name, event.context)
            return
        left = [("stderr", DROPPED.format(self.tail.dropped))] if self.tail.dropped else []
        self.end["output"] = left + self.tail.pieces() + self.end["output"]
        if self.calls:
            asked = future.get_flux().rpc("job-info.lookup", {"id": self.job, "keys": [RESULT_KEY], "flags": 0})
            asked.then(self.take_result)
        else:
            self.reply(key=self.key, end=self.end)

    def take_result(self, future: Any) -> None:
        """Take what a function returned, if it came to that; reply with the job's end."""
        with suppress(OSError):
            self.end["returned"] = future.get()[RESULT_KEY]
        self.reply(key=self.key, end=self.end)


class Journal:
    """The jobs that are followed, and the stream of their events."""

    def __init__(self, handle: Any, reply: Replies) -> None:
        self.handle, self.reply, self.recorded = handle, reply, Recorded(reply)
        self.jobs: dict[int, Followed] = {}
        self.calls: set[str] = set()  #: the keys of jobs that call functions
        #: Of jobs that nobody follows yet, whose id or past is asked for: the events that came meanwhile
        self.early: dict[int, list[Event]] = {}
        self.asked = 0
        #: Jobs from before: when their events are read again, and the pause before that
        self.again: dict[int, tuple[float, float]] = {}
        self.lost = Lost(handle)
        allow = {"allow": dict.fromkeys(TOLD, 1)}
        stream = handle.rpc("job-manager.events-journal", allow, 0, constants.FLUX_RPC_STREAMING)
        stream.then(self._receive)

    def expect(self, future: Any, then: Callable[[Any], None]) -> None:
        """Keep the events of all jobs until an answer has come; ``then`` may follow jobs."""
        self.asked += 1

        def answered(future: Any) -> None:
            then(future)
            self.asked -= 1
            if not self.asked:
                self.early.clear()

        future.then(answered)

    def follow(self, key: str, job: int, past: list[Event]) -> None:
        """Follow a job, whose answer was expected, from its past on."""
        followed = Followed(key, job, self.reply, key in self.calls)
        self.jobs[job] = followed
        for event in past + self.early.pop(job, []):
            self._take(followed, event)

    def follow_earlier(self, key: str, job: int, then: Callable[[], None] = lambda: None) -> None:
        """Follow a job from before, and do ``then``.

        Flux may have forgotten it, or another lead may have given its id to another job.
        """
        asked = self.handle.rpc("job-info.lookup", {"id": job, "keys": ["jobspec", "eventlog"], "flags": 0})
        self.expect(asked, partial(self._found, key, job, then))

    def _found(self, key: str, job: int, then: Callable[[], None], future: Any) -> None:
        try:
            answer = future.get()
        except FileNotFoundError:
            answer = {"jobspec": "{}"}
        except OSError as error:
            self.reply.refuse(key, error)
            return
        if "eventlog" in answer and (key.startswith(ANY_JOB) or marked(json.loads(answer["jobspec"])) == key):
            self.calls |= {key} if calls_function(json.loads(answer["jobspec"])) else set()
            self.follow(key, job, [*events(answer["eventlog"])])
            if job in self.jobs:
                self.again[job] = (time.monotonic() + AGAIN_SECONDS, AGAIN_SECONDS)
            then()
        else:
            self._look_up(key, job)

    def look(self, *_: Any) -> None:
        """Look for the records of jobs, and read the events of jobs from before again.

        Flux tells events before it stores them: what it told before this program listened may not have been there yet.
        """
        self.recorded.look()
        now = time.monotonic()
        for followed, copy in self.lost.look():
            if copy is None:
                self._end(followed)
            else:
                self.follow_earlier(followed.key, copy)
        for job, (due, pause) in [*self.again.items()]:
            if job not in self.jobs:
                del self.again[job]
            elif now >= due:
                self.again[job] = (now + 2 * pause, 2 * pause)
                asked = self.handle.rpc("job-info.lookup", {"id": job, "keys": ["eventlog"], "flags": 0})
                asked.then(partial(self._read_again, job))

    def _read_again(self, job: int, future: Any) -> None:
        try:
            past = [*events(future.get()["eventlog"])]
        except FileNotFoundError:
            if followed := self.jobs.pop(job, None):
                self._look_up(followed.key, job)
        except OSError:
            pass  # the next look is on its way
        else:
            if followed := self.jobs.get(job):
                for event in past:
                    self._take(followed, event)

    def _look_up(self, key: str, job: int) -> None:
        """Look for the record of a job that Flux does not have."""
        self.recorded.want(key, partial(self.reply, key=key, lost=True), job if key.startswith(ANY_JOB) else None)

    def _receive(self, future: Any) -> None:
        answer = future.get()
        future.reset()
        for event in answer["events"]:
            # Flux before 0.61 names the job beside each event
            job, told = (event["id"], event["entry"]) if "entry" in event else (answer["id"], event)
            if job in self.jobs:
                self._take(self.jobs[job], told)
            elif self.asked:
                self.early.setdefault(job, []).append(told)

    def _take(self, followed: Followed, event: Event) -> None:
        if not followed.take(event) or followed.job not in self.jobs:
            return
        del self.jobs[followed.job]
        if copy := followed.copy():
            self.follow_earlier(followed.key, int(JobID(copy)))
        elif followed.has_lost_node():
            self.lost.add(followed)
        else:
            self._end(followed)

    def _end(self, followed: Followed) -> None:
        self._ask_usage(followed, time.monotonic() + BEHIND_SECONDS)

    def _ask_usage(self, followed: Followed, latest: float) -> None:
        asked = self.handle.rpc("job-list.list-id", {"id": followed.job, "attrs": [*USAGE_ATTRIBUTES, *TIMES]})
        asked.then(partial(self._take_usage, followed, latest))

    def _ask_again(self, followed: Followed, latest: float, _handle: Any, timer: Any, *_: Any) -> None:
        timer.destroy()  # or the handle would keep it
        self._ask_usage(followed, latest)

    def _take_usage(self, followed: Followed, latest: float, future: Any) -> None:
        """Take what a job has used, and when, unless Flux has forgotten it; then read its output."""
        with suppress(OSError):
            job = future.get()["job"]
            if not job.get("t_inactive") and time.monotonic() < latest:
                self.handle.timer_watcher_create(LIST_PAUSE_SECONDS, partial(self._ask_again, followed, latest)).start()
                return
            followed.end.update(usage=usage(job), nodes=job.get("nodelist", ""), times=[job.get(at) for at in TIMES])
        event_watch_async(self.handle, followed.job, eventlog="guest.output").then(followed.take_output)
