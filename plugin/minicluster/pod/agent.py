"""agent.py SETTINGS: beside the lead broker, scales the cluster by what Flux needs and serves metrics.

SETTINGS is a JSON file, read anew each period: what an upgrade changes counts without a restart. Decisions
are one line each on stderr, and events of the Job.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import fields
from pathlib import Path
from typing import Any, Iterator

import flux
import flux.kvs
import metrics
import state
from autoscale import Autoscaler, Policy, Request, Seen, need, request
from kube import Kube, KubeError, server

REASON = "minicluster: scaling down"


def say(text: str) -> None:
    """Write a line of the log."""
    print(f"minicluster-agent: {text}", file=sys.stderr, flush=True)


def known(policy: dict[str, Any]) -> Policy:
    """Return a policy of the settings; what a newer version adds to them is passed over."""
    names = {field.name for field in fields(Policy)}
    return Policy(**{name: value for name, value in policy.items() if name in names})


class Agent:
    """What the agent remembers from one period to the next."""

    def __init__(self, handle: Any, file: Path) -> None:
        """Connect to nothing yet."""
        self.handle, self.file = handle, file
        self.autoscaler = Autoscaler()
        self.seen: Seen | None = None  #: last, for metrics while the API server is away
        self.requests: dict[int, Request] = {}
        self.board = metrics.Board()
        self.said: dict[str, str] = {}

    def period(self, now: float) -> float:
        """Look, decide, do, at a time of the monotonic clock; return after how many seconds to do so again."""
        settings = json.loads(self.file.read_text(encoding="utf-8"))
        policy = known(settings["policy"]) if settings["policy"] else None
        nodes = state.nodes(self.handle)
        waiting = state.waiting(self.handle)
        try:
            if policy:
                self.seen = self._scale(settings, policy, nodes.first(settings["max_size"]), waiting, now)
            else:
                self.seen = None
        except KubeError as error:
            self._tell(f"the size can't be read or changed now: {error}")
        if not settings["port"]:
            self.board.hide()
        else:
            wait = state.queue_wait(waiting, time.time())
            size = self.seen.size if self.seen else settings["size"]
            wishes = self.seen.wishes(policy) if self.seen and policy else {}
            found = metrics.Found(size, settings["max_size"], nodes, state.counts(self.handle), wait)
            self._show(settings["port"], metrics.text(found, wishes))
        return float(settings["period"])

    def _show(self, port: int, text: str) -> None:
        try:
            self.board.show(port, text)
        except OSError as error:
            self._tell(f"metrics.port {port} can't be served: {error}", "port")

    def _tell(self, text: str, about: str = "size") -> None:
        """Say what is new about something; "" when there is nothing to say."""
        if text != self.said.get(about, ""):
            self.said[about] = text
            if text:
                say(text)

    def _scale(
        self,
        settings: dict[str, Any],
        policy: Policy,
        nodes: state.Nodes,
        waiting: list[dict[str, Any]],
        now: float,
    ) -> Seen:
        kube = Kube(server(), settings["namespace"], settings["name"])
        job = kube.give_up(kube.get_job())
        size = int(job["spec"]["completions"])
        self._undrain(nodes, size)
        seen = Seen(
            now=now,
            size=size,
            nodes=nodes,
            need=need(nodes, size, policy.max, self._requests(waiting)),
            waiting=len(waiting),
            asked=self._asked(),
            cpu=self._cpu(kube, settings, policy, size),
        )
        wanted, why = self.autoscaler.decide(policy, seen)
        if wanted == size:
            self._tell(f"size {size}: {why}")
        elif self._resize(kube, job, seen, wanted):
            self._tell(f"size {size} -> {wanted}: {why}")
            self._event(kube, job, f"size {size} -> {wanted}: {why}")
        return seen

    def _resize(self, kube: Kube, job: dict[str, Any], seen: Seen, wanted: int) -> bool:
        """Change the size; a smaller one only once nothing can start on what goes."""
        # a size set by hand may be beyond what Flux knows
        leaving = [rank for rank in range(wanted, seen.size) if rank in seen.nodes.all]
        if leaving:
            self._rpc("resource.drain", {"targets": state.idset(leaving), "reason": REASON, "mode": "update"})
            nodes = state.nodes(self.handle)
            if any(rank in nodes.used for rank in leaving):
                self._undrain(nodes, seen.size)
                self._tell(f"size {seen.size}: a job started on a node that was to go")
                return False
        try:
            kube.resize(job, wanted)
        except KubeError:
            self._undrain(state.nodes(self.handle), seen.size)
            raise
        return True

    def _event(self, kube: Kube, job: dict[str, Any], text: str) -> None:
        try:
            kube.event(job, "Scaled", text)
        except KubeError as error:
            say(f"no event: {error}")

    def _undrain(self, nodes: state.Nodes, size: int) -> None:
        """Undrain what we drained and is to stay."""
        ours = [rank for rank, reason in nodes.drained.items() if reason == REASON and rank < size]
        if ours:
            self._rpc("resource.undrain", {"targets": state.idset(ours), "mode": "update"})

    def _rpc(self, topic: str, payload: dict[str, Any]) -> None:
        self.handle.rpc(topic, payload, nodeid=0).get()

    def _requests(self, waiting: list[dict[str, Any]]) -> Iterator[Request]:
        """Yield what the waiting jobs ask for; each is looked up once."""
        from flux.job import job_kvs_lookup

        active = {job["id"] for job in waiting}
        self.requests = {job: asked for job, asked in self.requests.items() if job in active}
        for job in waiting:
            if job["id"] not in self.requests:
                found = job_kvs_lookup(self.handle, job["id"], keys=["jobspec"])
                if not found:
                    continue
                self.requests[job["id"]] = request(found["jobspec"]["resources"])
            yield self.requests[job["id"]]

    def _asked(self) -> int:
        try:
            return int(flux.kvs.get(self.handle, state.ASKED))
        except (OSError, ValueError, TypeError):
            return 0

    def _cpu(self, kube: Kube, settings: dict[str, Any], policy: Policy, size: int) -> float | None:
        """Return the CPU use as a part of the request; None when it can't be had."""
        if not policy.cpu_target:
            return None
        try:
            used = kube.cpu(settings["container"])
        except KubeError as error:
            self._tell(f"CPU use can't be read: {error}", "cpu")
            return None
        self._tell("", "cpu")
        return used / (size * float(settings["cpu_request"]))


def main() -> None:
    """Look, decide and do, until the pod ends."""
    agent = Agent(flux.Flux(), Path(sys.argv[1]))
    while True:
        begin = time.monotonic()
        period = agent.period(begin)
        time.sleep(max(0.1, begin + period - time.monotonic()))


if __name__ == "__main__":
    main()
