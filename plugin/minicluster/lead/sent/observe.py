"""observe.py MOST [once]: tells a client of all jobs and nodes, as they are and as they change, for a picture.

Writes JSON objects, each on a line: ``ready`` with Flux's version; the ``jobs`` that there are, of those that have
ended the last MOST; their changes, also as ``jobs``; ``nodes``, the events of nodes; ``status``, which is what
`minicluster status` asks for; ``use``, what jobs use on each rank; ``past`` when all of the past was told; and signs of
life. A job is a record of job_record.py, or the part of it that has changed, with its ``number``. It also has
``ncores``, and ``command`` as far as Flux told it.

It sleeps until Flux's journals have something. What costs more, the status, is at most a part of a core. Sent with the
modules that it imports; ends with its standard input, or with ``once`` after the past. Runs with the view's Python,
3.8 or later.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import sys
import time
from contextlib import suppress
from functools import partial
from typing import Any, Mapping

import flux
from flux import constants
from flux.job import JobID
from job_record import USAGE_ATTRIBUTES, usage
from observed import (
    NODE_RECORDS,
    InnerLooks,
    change_of,
    cores_of,
    described,
    earlier_nodes,
    hosts_of,
    of_nodes,
    past,
    placed,
)
from replies import Replies, read_requests
from used_now import UseLooks
from waiting import grouped, queue_problem, reasons, settings

#: Events of a job that tell how it goes (RFC 21); the others would wake the program as often again
TOLD_EVENTS = ("submit", "alloc", "finish", "exception", "clean", "urgency", "memo")
#: Jobs of a reply
REPLY_JOBS = 500
#: The document of a job that comes with an event, and what it says of the job
DOCUMENTS = {"submit": "jobspec", "alloc": "R"}
ABOUT = {"jobspec": described, "R": placed}
#: Seconds that changes are gathered; seconds without one until all that have come are read
GATHER_SECONDS, BACKLOG_SECONDS = 0.45, 0.005
#: Seconds between two looks at the status: after a change at least, without one
STATUS_SECONDS, OLD_STATUS_SECONDS = 2.0, 60.0
#: How many times as long as a look's CPU time the pause after it is
STATUS_PAUSE_FACTOR = 500


class Observer:
    """Tells what changes."""

    def __init__(self, handle: Any, reply: Replies) -> None:
        self.handle, self.reply = handle, reply
        self.looks = UseLooks(handle, reply), InnerLooks(handle, reply)
        self.changes: dict[int, dict[str, Any]] = {}
        self.is_changed, self.next_look = True, 0.0
        self.nodes: tuple[str, Mapping[str, str]] | None = None
        #: while changes are gathered: when that began, and how many were read at the last look
        self.timer: Any = None
        self.began, self.read, self.read_before = 0.0, 0, 0

    def begin(self, most: int) -> None:
        """Open the streams, then tell the past; a job may be in both. Raises OSError."""
        self._stream("job-manager.events-journal", {"allow": dict.fromkeys(TOLD_EVENTS, 1)}, self._job_events)
        self._node_stream()
        self.reply(nodes=earlier_nodes(self.handle))
        records = past(self.handle, most)
        while part := list(itertools.islice(records, REPLY_JOBS)):
            self.reply(jobs=part)
            for each in self.looks:
                each.see(part)
        self.look()
        self.reply(past=True)

    def _stream(self, topic: str, payload: Mapping[str, Any], then: Any) -> None:
        def receive(future: Any) -> None:
            then(future.get())
            future.reset()
            self._wake()

        self.handle.rpc(topic, payload, 0, constants.FLUX_RPC_STREAMING).then(receive)

    def _node_stream(self) -> None:
        from offers import watch_nodes

        topic, payload = watch_nodes()
        has_journal = topic == "resource.journal"
        # before flux-core 0.72 the looks find what has changed
        self.nodes = None if has_journal else ("", {})
        self._stream(topic, payload, self._node_events if has_journal else lambda _: None)

    def _job_events(self, answer: Mapping[str, Any]) -> None:
        for event in answer["events"]:
            # Flux before 0.61 names the job beside each event
            job, entry = (event["id"], event["entry"]) if "entry" in event else (answer["id"], event)
            change = self.changes.setdefault(job, {"number": job, "id": JobID(job).f58plain})
            change.update(change_of(entry))
            self._fill(change, entry["name"], answer)

    def _fill(self, change: dict[str, Any], event: str, context: Mapping[str, Any]) -> None:
        """Add what Flux tells beside an event, or look it up: before 0.63 there is no jobspec."""
        key = DOCUMENTS.get(event)
        if key and context.get(key):
            change.update(ABOUT[key](context[key]))
        elif key:
            payload = {"id": change["number"], "keys": [key], "flags": 0}
            self._ask(change["number"], "job-info.lookup", payload, lambda answer: ABOUT[key](json.loads(answer[key])))
        elif event == "clean":
            payload = {"id": change["number"], "attrs": USAGE_ATTRIBUTES}
            self._ask(change["number"], "job-list.list-id", payload, lambda answer: {"usage": usage(answer["job"])})

    def _ask(self, job: int, topic: str, payload: Mapping[str, Any], about: Any) -> None:
        self.handle.rpc(topic, payload).then(partial(self._answered, job, about))

    def _answered(self, job: int, about: Any, future: Any) -> None:
        with suppress(OSError):  # Flux has forgotten it
            change = about(future.get())
            self.changes.setdefault(job, {"number": job}).update(change)
            self._wake()

    def _node_events(self, answer: Mapping[str, Any]) -> None:
        events = [
            {"t": event["timestamp"], "event": event["name"], **of_nodes(event.get("context", {}))}
            for event in answer["events"][-NODE_RECORDS:]
        ]
        hosts = hosts_of(answer.get("R"))
        if events or hosts:
            self.reply(nodes=events, **({"hosts": hosts, "cores": cores_of(answer["R"])} if hosts else {}))

    def _wake(self) -> None:
        self.is_changed = True
        self.read += 1
        if self.timer is None:
            # to be woken by each event costs several times as much as to read them together
            select.select([0], [], [], GATHER_SECONDS)
            self.began = time.monotonic()
            self._read_more()

    def _read_more(self) -> None:
        # Flux's timers work once
        self.timer = self.handle.timer_watcher_create(BACKLOG_SECONDS, self._tell)
        self.timer.start()
        self.read_before = self.read

    def _tell(self, *_: Any) -> None:
        self.timer.stop()
        if self.read != self.read_before and time.monotonic() < self.began + GATHER_SECONDS:
            self._read_more()
            return
        self.timer = None
        changes, self.changes = self.changes, {}
        if changes:
            self.reply(jobs=[*changes.values()])
            for each in self.looks:
                each.see(changes.values())

    def look_again(self, *_: Any) -> None:
        """Tell the use of jobs, and the status if it may have changed, when it is time."""
        for each in self.looks:
            each.look()
        now = time.monotonic()
        if now >= self.next_look and (self.is_changed or now >= self.next_look + OLD_STATUS_SECONDS):
            self.look()

    def look(self) -> None:
        """Tell the status. Raises OSError."""
        import state

        used, self.is_changed = time.process_time(), False
        summary = state.summary(self.handle)
        summary.update(waiting=grouped(reasons(self.handle)), queue_problem=queue_problem(self.handle))
        self.reply(status=[settings(), summary], now=time.time())
        if self.nodes is not None:
            self._compare(summary)
        pause = max(STATUS_SECONDS, STATUS_PAUSE_FACTOR * (time.process_time() - used))
        self.next_look = time.monotonic() + pause

    def _compare(self, summary: Mapping[str, Any]) -> None:
        """Tell how nodes differ from the look before, where Flux has no journal of them."""
        from state import parse_idset, to_idset

        online, drained = self.nodes or ("", {})
        before, now, when = set(parse_idset(online)), set(parse_idset(summary["online"])), time.time()
        events = [{"t": when, "event": "online", "ranks": to_idset(now - before)}] if now - before else []
        events += [{"t": when, "event": "offline", "ranks": to_idset(before - now)}] if before - now else []
        for rank, reason in summary["drained"].items():
            events += [{"t": when, "event": "drain", "ranks": rank, "reason": reason}] if rank not in drained else []
        gone = ",".join(rank for rank in drained if rank not in summary["drained"])
        events += [{"t": when, "event": "undrain", "ranks": gone}] if gone else []
        self.nodes = summary["online"], summary["drained"]
        if events:
            self.reply(nodes=events)


def main(most: str, *words: str) -> None:
    """Tell until nobody listens."""
    handle = flux.Flux()
    reply = Replies(handle)
    # a broker that has just come back lacks modules
    handle.rpc("state-machine.wait").get()
    reply(ready=handle.attr_get("version"))
    observer = Observer(handle, reply)
    observer.begin(int(most))
    looks = handle.timer_watcher_create(STATUS_SECONDS, observer.look_again, repeat=STATUS_SECONDS)
    with read_requests(handle, lambda _: None), looks:
        if "once" in words:
            finish(handle, reply)
        else:
            handle.reactor_run()


def finish(handle: Any, reply: Replies) -> None:
    """Let the streams tell what they have, and write all of it."""
    with handle.timer_watcher_create(2 * GATHER_SECONDS, lambda *_: handle.reactor_stop()):
        handle.reactor_run()
    os.set_blocking(reply.file, True)
    while reply.rest:
        del reply.rest[: os.write(reply.file, reply.rest)]


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(1)  # the client is gone; a flush would complain
