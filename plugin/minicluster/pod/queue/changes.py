"""Wakes the agent when Flux has changed: a job waits or starts, a node comes or goes, a size is requested.

Flux streams such events. The agent only learns that something has changed, and then looks at all of Flux.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import time
from typing import Any, Iterable

from flux import constants
from flux.future import Future
from offers import watch_kvs, watch_nodes
from state import size_key

#: Topic and payload of each stream
STREAMS = {
    # after its event `priority` a job waits for nodes (RFC 21)
    "jobs": ("job-manager.events-journal", {"allow": {"priority": 1}}),
    "nodes": watch_nodes(),
    "size": watch_kvs(size_key()),
    # a job loses a node, or is cancelled
    "exceptions": ("job-manager.events-journal", {"allow": {"exception": 1}}),
    # with its event `alloc` a job gets its nodes
    "starts": ("job-manager.events-journal", {"allow": {"alloc": 1}}),
    # the events of a job begin and end with these
    "ends": ("job-manager.events-journal", {"allow": {"submit": 1, "clean": 1}}),
}
#: Names of the streams that change what the queue needs, and of the one that changes which nodes are busy
NEED_STREAMS, START_STREAMS = ("jobs", "nodes", "size"), ("starts",)
#: Seconds for which more changes may follow the first one: jobs are often submitted together
SETTLE_SECONDS = 0.05
#: The least seconds between two looks, and how many times as long as a look's CPU time: so 5 % of a core at most
PAUSE_SECONDS, PAUSE_FACTOR = 0.25, 20


def pause_after(used: float) -> float:
    """Return the least seconds until the next look, after one that used ``used`` seconds of CPU."""
    return max(PAUSE_SECONDS, PAUSE_FACTOR * used)


class Changes:
    """What has changed in Flux since the last wait."""

    def __init__(self, handle: Any, names: Iterable[str] = NEED_STREAMS, groups: Iterable[str] = ()) -> None:
        """Take a handle that nothing else uses, the names of streams, and groups whose size may be requested.

        Open no stream yet.
        """
        self.handle = handle
        self.topics = {name: STREAMS[name] for name in names}
        self.topics.update((f"size {group}", watch_kvs(size_key(group))) for group in groups)
        self.streams: dict[str, Any] = {}
        self.changed = self.stops = False

    def wait(self, least: float, most: float) -> None:
        """Return after a change, but not before ``least`` seconds; without one, after ``most`` seconds.

        Raises OSError when the broker is gone.
        """
        end = time.monotonic() + most
        if least < most:
            self._open()
        self._run(min(least, most), stops=False)
        if not self.changed:
            self._run(end - time.monotonic(), stops=True)
            if self.changed:
                self._run(min(SETTLE_SECONDS, end - time.monotonic()), stops=False)
        self.changed = False

    def _open(self) -> None:
        """Open the closed streams: Flux ends a stream when it unloads its module, or has not loaded the module yet."""
        for name in self.topics.keys() - self.streams.keys():
            stream = self.handle.rpc(*self.topics[name], 0, constants.FLUX_RPC_STREAMING)
            self.streams[name] = stream.then(self._event, name)

    def _event(self, stream: Any, name: str) -> None:
        try:
            counts = self.read(stream)
        except OSError:
            del self.streams[name]
            return
        stream.reset()
        if counts:
            self.wake()

    def read(self, stream: Any) -> bool:
        """Take an event; say whether it is a change. Raises OSError at the end of the stream."""
        Future.get(stream)  # not RPC.get, which would parse the reply
        return True

    def wake(self) -> None:
        """Note a change."""
        self.changed = True
        if self.stops:
            self.handle.reactor_stop()

    def _run(self, seconds: float, stops: bool) -> None:
        """Take events for some seconds; with ``stops``, up to the first one."""
        end = time.monotonic() + seconds
        self.stops = stops
        # a timer may be early: it counts from the reactor's own time, which stands still between two runs
        while not (stops and self.changed) and (left := end - time.monotonic()) > 0:
            with self.handle.timer_watcher_create(left, lambda *_: self.handle.reactor_stop()):
                if self.handle.reactor_run() < 0:
                    raise OSError("the broker is gone")
