"""Jobs that may be stopped: when another job has waited for long, the fewest of them go back into the queue.

Those with the attribute `user.minicluster.preemptible` are marked. A marked job is stopped only for one that is not, is
no less urgent, and then has room, and after it has run for a while; the path is that of a leaving pod (requeue.py).
A thread of undrainer.py, with `flux.preemption`.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import errno
import json
import math
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Iterable, Mapping, NamedTuple, Sequence

import state
from autoscale import read_groups
from changes import Changes, pause_after
from flux.job import JobID, cancel
from flux.job import kill as send
from need import Request
from preemption_plan import Free, Stoppable, Stops, Waiter, stops_for, without
from recovery import queue_status
from requeue import ask_for_copies, lookup, own_attributes, resubmit, warning
from start_times import PLANNED_JOBS, resources_of, waiting_of

#: Pauses between two looks: while a job is being stopped; while one has waited for long; when none waits
STOPPING_SECONDS, OVERDUE_SECONDS, NONE_WAITS_SECONDS = 0.5, 5.0, 60.0
#: Memo of a job for which others are stopped
STOPS_KEY = "minicluster_stops"
#: The Fluxion that neither moves nor removes a waiting job which had no room before (flux-sched#1209, #1217)
DEAF_VERSION = "0.34."
Job = Mapping[str, Any]


class Rules(NamedTuple):
    """`flux.preemption`, and the time that jobs of a leaving pod have; in seconds."""

    after: float
    least_run: float
    leave: float


class Preemption:
    """Looks at the queue, and stops jobs."""

    def __init__(self, handle: Any, rules: Rules, settings: Path) -> None:
        self.handle, self.rules, self.settings = handle, rules, settings
        self.in_order = state.scheduler(handle).get("queuePolicy", "fcfs") == "fcfs"
        #: By job, of those that wait or run: its own attributes, and what it asks for
        self.known: dict[int, tuple[Mapping[str, Any], Request]] = {}
        #: When a job is to be cancelled, infinite once it is, and why
        self.stopping: dict[int, tuple[float, str]] = {}
        self.served: dict[int, float] = {}  #: when jobs were last stopped for a job

    def look(self) -> float:
        """Stop what is to be stopped; return the seconds until the next look. Raises OSError."""
        waiting, now = state.waiting_jobs(self.handle)[:PLANNED_JOBS], time.time()
        if not waiting and not self.stopping:
            return NONE_WAITS_SECONDS
        marked, others = self._divided(waiting)
        longest = max([self._waited(job, now) for job in others], default=-math.inf)
        if longest >= self.rules.after or self.stopping:
            running = {job["id"]: job for job in state.jobs(self.handle, "running", ["t_run", "urgency"])}
            active = running.keys() | {job["id"] for job in waiting}
            self.known = {job: told for job, told in self.known.items() if job in active}
            self.served = {job: at for job, at in self.served.items() if job in active}
            self.stopping = {job: told for job, told in self.stopping.items() if job in running}
            chosen = self._plan(running, others, now)
            if chosen:
                its = next(job for job in others if job["id"] == chosen.job)
                self._let_pass(its, marked)
                self._stop(chosen, now)
            self._cancel_due(now)
        if self.stopping:
            return STOPPING_SECONDS
        left = self.rules.after - longest
        return min(NONE_WAITS_SECONDS, left) if left > 0 else OVERDUE_SECONDS

    def _divided(self, listed: Iterable[Job]) -> tuple[list[Job], list[Job]]:
        """Return those of some jobs that are marked, and the others. Raises OSError."""
        marked: list[Job] = []
        others: list[Job] = []
        for job in listed:
            if job["id"] not in self.known:
                jobspec = lookup(self.handle, job["id"])
                if not jobspec:
                    continue
                request = waiting_of(self.handle, job["id"], jobspec).request
                self.known[job["id"]] = own_attributes(jobspec), request
            (marked if self.known[job["id"]][0].get("preemptible") else others).append(job)
        return marked, others

    def _waited(self, job: Job, now: float) -> float:
        """Return for how many seconds a job has waited, since others were stopped for it."""
        return now - max(float(job["t_depend"]), self.served.get(job["id"], 0.0))

    def _plan(self, running: Mapping[int, Job], waiting: Iterable[Job], now: float) -> Stops | None:
        marked = [job["id"] for job in self._divided(running.values())[0]]
        stoppable = []
        for number, resources in resources_of(self.handle, marked):
            job = running[number]
            stoppable.append(Stoppable(number, state.by_rank(resources), now - job["t_run"], job["urgency"]))
        there = state.nodes(self.handle)
        whole = {rank: there.all[rank] for rank in sorted(there.online & there.all.keys()) if rank not in there.drained}
        free = {rank: state.subtract(pair, there.used.get(rank, (0, 0))) for rank, pair in whole.items()}
        # what is being stopped is as good as free
        free = without(free, [job for job in stoppable if job.job in self.stopping])
        old = [job for job in stoppable if job.job not in self.stopping and job.ran >= self.rules.least_run]
        queue = [
            Waiter(job["id"], self.known[job["id"]][1], self._waited(job, now), job["urgency"])
            for job in waiting
            if self._starts(job.get("queue") or "")
        ]
        return stops_for(queue, (free, whole, self._growth(there)), old, self.rules.after, self.in_order)

    def _starts(self, queue: str) -> bool:
        """Say whether the jobs of a queue start."""
        status = queue_status(self.handle, queue)
        return bool(status.get("start", not status.get("stop_reason")))

    def _growth(self, there: state.Nodes) -> Free:
        """Return the nodes that the autoscaler may bring."""
        groups = read_groups(json.loads(self.settings.read_text(encoding="utf-8")))
        ranks = [rank for group in groups if group.limits for rank in group.ranks[: int(group.limits["max"])]]
        may_come = [rank for rank in ranks if there.drained.get(rank, state.OWN_REASON).startswith(state.OWN_REASON)]
        return {rank: there.all[rank] for rank in may_come if rank not in there.online or rank in there.drained}

    def _let_pass(self, job: Job, marked: Iterable[Job]) -> None:
        """Let marked jobs that wait before a job go behind it: they would get the room. Raises OSError."""
        if job["urgency"] > 1:  # 0 holds a job
            for one in marked:
                if one["priority"] >= job["priority"] and one["urgency"] >= job["urgency"]:
                    lower = {"id": one["id"], "urgency": job["urgency"] - 1}
                    self.handle.rpc("job-manager.urgency", lower).get()
                    if state.scheduler(self.handle).get("version", "").startswith(DEAF_VERSION):
                        self._submit_anew(lower, job["id"])

    def _submit_anew(self, job: Job, other: int) -> None:
        """Let a copy of a job wait in its place. Raises OSError."""
        copy = JobID(resubmit(self.handle, job, {}, runs=False)).f58plain
        cancel(self.handle, job["id"], f"minicluster: {copy} waits in its place, behind job {JobID(other).f58plain}")

    def _stop(self, chosen: Stops, now: float) -> None:
        """Put the jobs of a plan back, and warn them. Raises OSError."""
        keeps = [job for job in chosen.stops if self.known[job][0].get("requeue") != 0]
        copies, other = ask_for_copies(self.handle, keeps) if keeps else {}, JobID(chosen.job).f58plain
        stopped = []
        for job in chosen.stops:
            name = JobID(job).f58plain
            if job in keeps and name not in copies:
                continue  # the reason is logged
            again = f": it runs again as {copies[name]}" if name in copies else ""
            print(f"minicluster: job {name} is stopped for job {other}, which has waited long{again}", flush=True)
            why = f"minicluster: stopped for job {other}, which has waited long (flux.preemption){again}"
            self.stopping[job] = now + self._grace(job), why
            stopped.append(name)
        self.served[chosen.job] = now
        if stopped:
            memo = {STOPS_KEY: ", ".join(stopped)}
            self.handle.rpc("job-manager.memo", {"id": chosen.job, "volatile": False, "memo": memo}).get()

    def _grace(self, job: int) -> float:
        """Warn a job as it wishes, and return the seconds until it is cancelled. Raises OSError."""
        first = None
        try:
            first = warning(lookup(self.handle, job) or {"attributes": {}})
        except ValueError as error:
            print(f"minicluster: job {JobID(job).f58plain}: {error}", flush=True)
        if not first:
            return 0.0
        with suppress(OSError):  # it has just ended
            send(self.handle, job, signal.Signals(first[0]))
        return self.rules.leave if math.isinf(first[1]) else first[1]

    def _cancel_due(self, now: float) -> None:
        for job, (at, why) in self.stopping.items():
            if at <= now:
                with suppress(OSError):  # it has just ended
                    cancel(self.handle, job, why)
                self.stopping[job] = math.inf, why


def preempt(handle: Any, changes: Changes, rules: Sequence[str], settings: Path) -> None:
    """Stop jobs until the broker ends: OSError. Takes handles that nothing else uses."""
    preemption = Preemption(handle, Rules(*map(float, rules)), settings)
    while True:
        used, most = time.thread_time(), OVERDUE_SECONDS
        try:
            most = preemption.look()
        except OSError as error:
            # the scheduler is being reloaded
            if error.errno != errno.ENOSYS:
                raise
        changes.wait(min(most, max(1.0, pause_after(time.thread_time() - used))), most)
