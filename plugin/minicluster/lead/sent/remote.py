"""Runs on the lead for a client: submits jobs to Flux and says how they end, and which nodes are there.

Reads requests and writes replies, each a JSON object on a line. A request has a ``key``, which its replies repeat; that
of ``client`` is the client's, whose earlier programs it ends:

- ``submit``: a job. With ``again`` Flux may have it already; with ``drop`` it is looked for, but not submitted, nor if
  the queue is younger than its ``age``: it may have run, unless it may do so twice;
- ``watch``: the id of a job that an earlier program has submitted with this key, or anybody if the key begins with
  ``any-``. ``cancel``: the same, and the job is cancelled;
- ``output``: the id of a job. What it prints, from the byte ``at`` on, comes as ``text`` that goes ``to`` a byte, until
  it is ``over``, or ``gone``, or there is ``more``, for which it has to be asked again. "" ends that;
- ``list``: whether to list ended jobs too, in replies of their own, which say that there are ``more``;
- ``online``: the list [N, MAX]. Waits until, of MAX ranks from ``first`` (0) on, the first N and no others are online;
  with ``more``, others may be. At each change it replies how many are ``up``.

The replies about a job are its ``id`` (once it is saved; another one when it runs again), why it ``waits`` (when that
changes), ``started``, ``cancelled`` (once Flux knows), and at last ``end``; ``lost`` if Flux has no such job; ``error``
if Flux refuses it. The first reply is ``ready``. A reply ``alive`` comes every few seconds, so that a client notices a
dead connection.

Sent with the modules that it imports; ends with its standard input. Runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import Any

import flux
from begun import catch_up, is_younger
from described import jobspec, marked, shown, shown_record, why
from flux import constants
from flux.job import JobID, JobKVSLookup, JobList, cancel_async, submit_async
from followed import Journal
from job_report import JobReport
from live_output import LiveOutput
from recorded import RECORDS_SECONDS, inside
from replies import Replies, end_former, read_requests

#: Seconds until it is said again why jobs wait
PERIOD_SECONDS = 5.0
#: The part of the time that may go into saying why jobs wait
REASONS_PART = 0.05
#: Jobs that are looked up at once; jobs of a reply
LOOKUP_JOBS, LISTED_JOBS = 500, 1000


class FluxRequests:
    """Does the client's requests in Flux."""

    def __init__(self, handle: Any, reply: Replies) -> None:
        self.handle, self.reply = handle, reply
        self.journal, self.outputs = Journal(handle, reply), LiveOutput(handle, reply)
        self.earlier: dict[str, int] | None = None
        self.kept: list[Any] = []  # Python must not collect what waits for Flux
        #: Jobs that Flux has, and may lose with its lead; whether some are being saved
        self.unsaved: list[tuple[str, int]] = []
        self.is_saving = False
        self.next_reasons = 0.0

    def do(self, request: dict[str, Any]) -> None:
        """Do one request."""
        for name, action in (
            ("client", lambda key, *_: end_former(key)),
            ("submit", self._submit),
            ("watch", self._watch),
            ("cancel", self._cancel),
            ("output", self._output),
            ("list", self._list),
            ("online", self._online),
        ):
            if name in request:
                try:
                    action(request["key"], request[name], request)
                except (OSError, ValueError, TypeError) as error:
                    self.reply.refuse(request["key"], error)

    def _submit(self, key: str, job: dict[str, Any], request: dict[str, Any]) -> None:
        """Submit a job, unless Flux has it already, or the client has dropped it."""
        if not request["again"]:
            self._submit_new(key, job, request)
        elif key in self._earlier():
            self.journal.follow_earlier(key, self._earlier()[key])
        else:
            self.journal.recorded.want(key, partial(self._submit_new, key, job, request))

    def _submit_new(self, key: str, job: dict[str, Any], request: dict[str, Any]) -> None:
        try:
            if request["drop"] or (request["again"] and self._may_have_run(job, request["age"])):
                self.reply(key=key, lost=True)
                return
            future = submit_async(self.handle, jobspec(job, key))
            self.journal.calls |= {key} if job.get("files") else set()
        except (OSError, ValueError, TypeError) as error:
            self.reply.refuse(key, error)
        else:
            self.journal.expect(future, partial(self._submitted, key))

    def _may_have_run(self, job: dict[str, Any], age: float) -> bool:
        """Return whether a job that Flux hasn't got may have run in an earlier queue, and must not twice."""
        return job.get("attributes", {}).get("user.minicluster.requeue") != 1 and is_younger(self.handle, age)

    def _submitted(self, key: str, future: Any) -> None:
        try:
            job = future.get_id()
        except OSError as error:
            self.reply.refuse(key, error)
        else:
            self.unsaved.append((key, job))
            self._save()

    def _save(self) -> None:
        """Save new jobs, as many at once as have come meanwhile."""
        if self.unsaved and not self.is_saving:
            some, self.unsaved, self.is_saving = self.unsaved, [], True
            # as flux_kvs_commit(3)
            change = {"namespace": "primary", "flags": constants.FLUX_KVS_SYNC, "ops": []}
            self.journal.expect(self.handle.rpc("kvs.commit", change, 0), partial(self._saved, some))

    def _saved(self, some: list[tuple[str, int]], future: Any) -> None:
        """Follow jobs and say their ids: no kill of the lead loses them any more."""
        with suppress(OSError):  # a full volume: its lead has the jobs, and status tells
            future.get()
        self.is_saving = False
        for key, job in some:
            self.journal.follow(key, job, [])
        self._save()

    def _earlier(self) -> dict[str, int]:
        """Return the jobs of clients of the SDK, by the keys of their requests."""
        if self.earlier is None:
            self.earlier = {}
            catch_up(self.handle)
            listed = JobList(self.handle, attrs=["state"], filters=["pending", "running", "inactive"], max_entries=0)
            ids = [job["id"] for job in listed.fetch_jobs().get_jobs()]
            for start in range(0, len(ids), LOOKUP_JOBS):
                for answer in JobKVSLookup(self.handle, ids[start : start + LOOKUP_JOBS]).data():
                    if key := marked(answer["jobspec"]):
                        self.earlier[key] = answer["id"]
        return self.earlier

    def _watch(self, key: str, name: str, _request: dict[str, Any]) -> None:
        """Follow a job that was submitted before."""
        self.journal.follow_earlier(key, int(JobID(name)))

    def _cancel(self, key: str, name: str, request: dict[str, Any]) -> None:
        def cancel() -> None:
            told = cancel_async(self.handle, JobID(name), "cancelled by a client of the SDK")
            told.then(partial(self._cancelled, key))

        if request.get("again"):
            self.journal.follow_earlier(key, int(JobID(name)), cancel)
        else:
            cancel()

    def _cancelled(self, key: str, future: Any) -> None:
        with suppress(OSError):  # the job is over already: its end is on the way
            future.get()
            self.reply(key=key, cancelled=True)

    def _output(self, key: str, name: str, request: dict[str, Any]) -> None:
        if name:
            self.outputs.begin(key, int(JobID(name)), request["at"])
        else:
            self.outputs.stop(key)

    def look(self, *_: Any) -> None:
        """Look for what Flux does not tell."""
        self.journal.look()
        self.outputs.look(self.journal.jobs)

    def tell_reasons(self, *_: Any) -> None:
        """Say why the waiting jobs wait."""
        if (start := time.monotonic()) < self.next_reasons:
            return
        waiting = [one for one in self.journal.jobs.values() if one.waits is not None]
        for one, reason in zip(waiting, why([one.job for one in waiting], self.handle)):
            if reason != one.waits:
                one.waits = reason
                self.reply(key=one.key, waits=reason)
        self.next_reasons = start + (time.monotonic() - start) / REASONS_PART

    def _list(self, key: str, ended: bool, _request: dict[str, Any]) -> None:
        listed = JobList(self.handle, filters=["pending", "running"], user="all", max_entries=0)
        active = {int(job.id): job for job in listed.jobs()}
        # after the others: a job that ends meanwhile is in both
        records = chain(map(json.loads, JobReport(self.handle, 0).ended() if ended else ()), inside(self.handle, ended))
        while part := [*islice(records, LISTED_JOBS)]:
            for record in part:
                active.pop(record["number"], None)
            self.reply(key=key, jobs=[shown_record(record) for record in part], more=True)
        ordered = sorted(active.values(), key=lambda job: job.id)
        self.reply(key=key, jobs=[shown(*pair) for pair in zip(ordered, why([job.id for job in ordered], self.handle))])

    def _online(self, key: str, ranks: list[int], request: dict[str, Any]) -> None:
        size, most = ranks
        own = range(request.get("first", 0), request.get("first", 0) + most)
        wanted = set(own[:size])

        def changed(future: Any) -> None:
            online = {rank for rank in flux.idset.IDset(future.get()["members"]) if rank in own}
            self.reply(key=key, up=len(online))
            if wanted <= online if request.get("more") else wanted == online:
                self.reply(key=key, online=True)
            future.reset()

        asked = self.handle.rpc("groups.get", {"name": "broker.online"}, 0, constants.FLUX_RPC_STREAMING)
        asked.then(changed)
        self.kept.append(asked)


def main() -> None:
    """Answer requests until there are no more."""
    handle = flux.Flux()
    reply = Replies(handle)
    handle.rpc("state-machine.wait").get()  # a broker that has just come back lacks modules
    jobs = FluxRequests(handle, reply)
    requests = read_requests(handle, jobs.do)
    reasons = handle.timer_watcher_create(PERIOD_SECONDS, jobs.tell_reasons, repeat=PERIOD_SECONDS)
    reply(ready=handle.attr_get("version"))
    looks = handle.timer_watcher_create(RECORDS_SECONDS, jobs.look, repeat=RECORDS_SECONDS)
    with requests, reasons, looks:
        handle.reactor_run()


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(1)  # the client is gone; a flush would complain
