"""Sends a client what its jobs print, while they run: as much as it can take, from the byte where it was.

A module of remote.py: runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Container

from flux import constants
from flux.job._wrapper import _RAW
from flux.job.event import JobEventWatchFuture
from output_events import KEPT_BYTES, OUTPUT_KEY, data_of, events

if TYPE_CHECKING:
    from replies import Replies


#: A job that waits has no output yet
WAITS = constants.FLUX_JOB_EVENT_WATCH_WAITCREATE


class Watch:
    """The output of a job, for one request."""

    def __init__(self, handle: Any, reply: Callable[..., None], job: int, begin: int) -> None:
        """Send it from a byte on; ``reply`` knows the request. Raises OSError."""
        self.handle, self.reply, self.job = handle, reply, job
        self.at, self.begin, self.limit, self.is_over = 0, begin, begin + KEPT_BYTES, False
        self.patience = 1
        self._read(WAITS)

    def _read(self, flags: int) -> None:
        self.begin, self.at = max(self.begin, self.at), 0
        self.quiet, self.has_ended = 0, False
        # a busy Flux may take long for a large output
        self.patience *= 2
        self.future = JobEventWatchFuture(_RAW.event_watch(self.handle, self.job, OUTPUT_KEY, flags))
        self.future.then(partial(self._take, self.future))

    def stop(self) -> None:
        """Send nothing more."""
        if not self.is_over:
            self.is_over = True
            self.future.cancel()

    def look(self, job_has_ended: bool) -> None:
        """Read again, where Flux has said nothing for some looks.

        Flux may wait for ever for the output of a job that has just ended.
        """
        self.quiet += 1
        if self.quiet > self.patience and (self.has_ended or job_has_ended) and not self.is_over:
            if not self.has_ended:
                self.future.cancel()
            self._read(0 if job_has_ended else WAITS)

    def _take(self, mine: Any, future: Any) -> None:
        try:
            event = future.get_event()
        except OSError:
            event = None  # there is none yet, it never ran, or Flux has forgotten it
        if self.is_over or mine is not self.future:
            return
        self.quiet = 0
        if event is None:
            self.has_ended = True
            known = self.handle.rpc("job-info.lookup", {"id": self.job, "keys": ["eventlog"], "flags": 0})
            known.then(self._end)
            return
        for stream, data in data_of(event.name, event.context):
            self.at += len(data)
            if self.at > self.begin:
                self.reply(text=[stream, data.decode(errors="replace")], to=self.at)
        if self.at >= self.limit:
            self.stop()
            self.reply(more=True)

    def _end(self, future: Any) -> None:
        try:
            told = {event["name"] for event in events(future.get()["eventlog"])}
        except OSError:
            self.is_over = True
            self.reply(gone=True)
        else:
            if "clean" in told and not self.is_over:
                self.is_over = True
                self.reply(over=True)


class LiveOutput:
    """The outputs that a client reads."""

    def __init__(self, handle: Any, reply: Replies) -> None:
        self.handle, self.reply = handle, reply
        self.watches: dict[str, Watch] = {}

    def begin(self, key: str, job: int, begin: int) -> None:
        """Send the output of a job, from a byte on. Raises OSError."""
        self.stop(key)
        self.watches = {each: watch for each, watch in self.watches.items() if not watch.is_over}
        self.watches[key] = Watch(self.handle, partial(self.reply, key=key), job, begin)

    def look(self, running: Container[int]) -> None:
        """Look for the ends of outputs that Flux does not tell; ``running`` are the jobs that have not ended."""
        for watch in [*self.watches.values()]:
            watch.look(watch.job not in running)

    def stop(self, key: str) -> None:
        """Send nothing more of a request."""
        if key in self.watches:
            self.watches.pop(key).stop()
