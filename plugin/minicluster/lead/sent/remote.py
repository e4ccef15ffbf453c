"""Runs on the lead for a client: submits jobs to Flux and says how they end, and which nodes are there.

Reads requests and writes replies, each a JSON object on a line. A request has a ``key``, which its replies repeat:

- ``submit``: a job. With ``again`` Flux may have it already; with ``drop`` it is looked for, but not submitted;
- ``watch``: the id of a job that an earlier program has submitted. ``cancel``: the same, and the job is cancelled;
- ``list``: whether to list ended jobs too;
- ``online``: the list [N, MAX]. Waits until, of MAX ranks from ``first`` (0) on, the first N and no others are online;
  with ``more``, others may be. At each change it replies how many are ``up``.

The replies about a job are its ``id``, why it ``waits`` (when that changes), ``started``, and at last ``end``; ``lost``
if Flux has no such job; ``error`` if Flux refuses it. The first reply is ``ready``. A reply ``alive`` comes every few
seconds, so that a client notices a dead connection.

Sent with described.py and waiting.py; ends with its standard input. Runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from typing import Any

import flux
from described import jobspec, marked, shown, text_of, why
from flux import constants
from flux.job import JobID, JobList, cancel_async, event_watch_async, job_kvs_lookup, submit_async

#: Seconds between two signs of life
ALIVE = 5.0


def reply(**answer: Any) -> None:
    """Write a reply."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def refuse(key: str, error: Exception) -> None:
    """Say why a request can't be done."""
    reply(key=key, error=getattr(error, "strerror", None) or str(error))


class Watched:
    """One job, followed to its end and through its output."""

    def __init__(self, handle: Any, key: str, job: Any) -> None:
        """Start to follow it."""
        self.handle, self.key, self.job = handle, key, job
        self.end: dict[str, Any] = {"status": None, "exception": None, "output": []}
        self.waits: str | None = ""  # the reason that the client knows; None once it no longer waits
        event_watch_async(handle, job).then(self._event)

    def _event(self, future: Any) -> None:
        event = future.get_event()
        if event is None:
            return
        if event.name in ("alloc", "exception"):
            self.waits = None
        if event.name == "start":
            reply(key=self.key, started=True)
        elif event.name == "finish":
            self.end["status"] = event.context["status"]
        elif event.name == "exception" and event.context["severity"] == 0 and not self.end["exception"]:
            self.end["exception"] = {"type": event.context["type"], "note": event.context.get("note", "")}
        elif event.name == "clean":
            event_watch_async(self.handle, self.job, eventlog="guest.output").then(self._output)

    def _output(self, future: Any) -> None:
        try:
            event = future.get_event()
        except OSError:
            event = None  # a job that never ran has no output
        if event is None:
            reply(key=self.key, end=self.end)
            return
        self.end["output"] += text_of(event)


class FluxRequests:
    """Does the client's requests in Flux."""

    def __init__(self, handle: Any) -> None:
        """Keep the handle, and the requests that wait for its answers."""
        self.handle = handle
        self.earlier: dict[str, Any] | None = None
        self.kept: list[Any] = []  # Python must not collect what waits for Flux

    def do(self, request: dict[str, Any]) -> None:
        """Do one request."""
        for name, action in (
            ("submit", self._submit),
            ("watch", self._watch),
            ("cancel", self._cancel),
            ("list", self._list),
            ("online", self._online),
        ):
            if name in request:
                try:
                    action(request["key"], request[name], request)
                except (OSError, ValueError, TypeError) as error:
                    refuse(request["key"], error)

    def _submit(self, key: str, job: dict[str, Any], request: dict[str, Any]) -> None:
        """Submit a job, unless Flux has it already, or the client has dropped it."""
        if request["again"] and key in self._earlier():
            self._follow(key, self._earlier()[key])
        elif request["drop"]:
            reply(key=key, lost=True)
        else:
            submit_async(self.handle, jobspec(job, key)).then(partial(self._submitted, key))

    def _submitted(self, key: str, future: Any) -> None:
        try:
            job = future.get_id()
        except OSError as error:
            refuse(key, error)
        else:
            self._follow(key, job)

    def _follow(self, key: str, job: Any) -> None:
        reply(key=key, id=JobID(job).f58)
        self.kept.append(Watched(self.handle, key, job))

    def _earlier(self) -> dict[str, Any]:
        """Return the jobs of clients of the SDK, by the keys of their requests."""
        if self.earlier is None:
            listed = JobList(self.handle, attrs=["state"], filters=["pending", "running", "inactive"], max_entries=0)
            ids = [job["id"] for job in listed.fetch_jobs().get_jobs()]
            found = [(marked(job_kvs_lookup(self.handle, job, keys=["jobspec"])), job) for job in ids]
            self.earlier = {key: job for key, job in found if key}
        return self.earlier

    def _watch(self, key: str, name: str, _request: dict[str, Any]) -> bool:
        """Follow a job that was submitted before; another lead may have given its id to another job."""
        job = JobID(name)
        found = job_kvs_lookup(self.handle, job, keys=["jobspec"])
        if marked(found) != key:
            reply(key=key, lost=True)
            return False
        self.kept.append(Watched(self.handle, key, job))
        return True

    def _cancel(self, key: str, name: str, request: dict[str, Any]) -> None:
        if not request.get("again") or self._watch(key, name, request):
            # no error if the job is over already: its end is on the way
            cancel_async(self.handle, JobID(name), "cancelled by a client of the SDK").then(lambda _: None)

    def tell_reasons(self, *_: Any) -> None:
        """Say that the program lives, and why the waiting jobs wait."""
        reply(alive=True)
        waiting = [one for one in self.kept if isinstance(one, Watched) and one.waits is not None]
        for one, reason in zip(waiting, why([one.job for one in waiting], self.handle)):
            if reason != one.waits:
                one.waits = reason
                reply(key=one.key, waits=reason)

    def _list(self, key: str, ended: bool, _request: dict[str, Any]) -> None:
        states = ["pending", "running"] + (["inactive"] if ended else [])
        found = sorted(JobList(self.handle, filters=states, user="all", max_entries=0).jobs(), key=lambda job: job.id)
        reply(key=key, jobs=[shown(*pair) for pair in zip(found, why([job.id for job in found], self.handle))])

    def _online(self, key: str, ranks: list[int], request: dict[str, Any]) -> None:
        size, most = ranks
        own = range(request.get("first", 0), request.get("first", 0) + most)
        wanted = set(own[:size])

        def changed(future: Any) -> None:
            online = {rank for rank in flux.idset.IDset(future.get()["members"]) if rank in own}
            reply(key=key, up=len(online))
            if wanted <= online if request.get("more") else wanted == online:
                reply(key=key, online=True)
            future.reset()

        asked = self.handle.rpc("groups.get", {"name": "broker.online"}, 0, constants.FLUX_RPC_STREAMING)
        asked.then(changed)
        self.kept.append(asked)


def read_requests(handle: Any, jobs: FluxRequests) -> Any:
    """Return a watcher that does each request on standard input, and ends the program when there are no more."""
    rest = [b""]

    def readable(*_: Any) -> None:
        data = os.read(0, 1 << 16)
        if not data:
            handle.reactor_stop()
        *lines, rest[0] = (rest[0] + data).split(b"\n")
        for line in lines:
            jobs.do(json.loads(line))

    return handle.fd_watcher_create(0, readable, constants.FLUX_POLLIN)


def main() -> None:
    """Answer requests until there are no more."""
    handle = flux.Flux()
    jobs = FluxRequests(handle)
    requests = read_requests(handle, jobs)
    alive = handle.timer_watcher_create(ALIVE, jobs.tell_reasons, repeat=ALIVE)
    reply(ready=handle.attr_get("version"))
    with requests, alive:
        handle.reactor_run()


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(1)  # the client is gone; a flush would complain
