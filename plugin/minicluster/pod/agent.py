"""agent.py SETTINGS: beside the lead's broker, scales the cluster by the needs of the queue and serves metrics.

SETTINGS is a JSON file. The agent reads it at each look, so an upgrade takes effect without a restart. It looks at Flux
when something has changed there, and once a period. Kubernetes is asked once a period, and when the size is to change.
Each decision is a line on stderr, and each change of the size an event of the Job.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import errno
import json
import math
import sys
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Iterator, NoReturn

import flux
import flux.kvs
import metrics
import state
from autoscale import Autoscaler, Decision, Policy, Snapshot
from changes import Changes
from kube import Kube, KubeError, server
from need import Request, parse_resources, queue_need

REASON = "minicluster: scaling down"
#: Seconds between two looks, at least, and how much longer than the CPU time of a look: that is 5 % of a core at most
PAUSE, PAUSE_FACTOR = 0.25, 20
#: Seconds after which a request that failed is repeated; doubled each time, up to the period
RETRY = 1.0


def log(text: str) -> None:
    """Write a line of the log."""
    print(f"minicluster-agent: {text}", file=sys.stderr, flush=True)


def parse_policy(policy: dict[str, Any], period: float) -> Policy:
    """Return the policy of the settings, without keys that only a newer version knows."""
    names = {field.name for field in fields(Policy)}
    return Policy(**{**{name: value for name, value in policy.items() if name in names}, "period": period})


class Agent:
    """Takes a snapshot at each look, decides and acts."""

    def __init__(self, handle: Any, file: Path) -> None:
        """Open no connection yet."""
        self.handle, self.file = handle, file
        self.autoscaler = Autoscaler()
        self.snapshot: Snapshot | None = None  #: the last one, for metrics while the API server is away
        self.requests: dict[int, Request] = {}  #: by the id of a waiting job
        self.server = metrics.MetricsServer()
        self.logged: dict[str, str] = {}  #: the last line about each subject
        self.job: dict[str, Any] = {}  #: as Kubernetes had it last
        self.cpu: float | None = None  #: use, in runners' requests; None when it is unknown or does not count
        self.expires = -math.inf  #: when Kubernetes is asked again
        self.retry = RETRY  #: seconds after which Kubernetes is asked again when it fails

    def look(self, now: float) -> tuple[float, float]:
        """Look at Flux and act, at a time of the monotonic clock.

        Return the seconds until the next look: if something changes before, and if nothing does. Raises OSError.
        """
        settings = json.loads(self.file.read_text(encoding="utf-8"))
        period = float(settings["period"])
        policy = parse_policy(settings["policy"], period) if settings["policy"] else None
        nodes = state.nodes(self.handle)
        waiting = state.waiting_jobs(self.handle)
        least, most = period, period
        if policy:
            try:
                wait = self._scale(settings, policy, nodes.first(settings["max_size"]), waiting, now)
                # until the end of a window nothing new can come of a look
                least, most = 0.0 if wait == math.inf else wait, min(wait, self.expires - now)
                self.retry = RETRY
            except KubeError as error:
                self._log_once(f"the size can't be read or changed now: {error}")
                least = most = min(period, self.retry)
                self.retry = 2 * most
        else:
            self.snapshot = None
        if settings["port"]:
            self._serve(settings, policy, nodes, waiting)
        else:
            self.server.clear()
        return least, most

    def _serve(
        self, settings: dict[str, Any], policy: Policy | None, nodes: state.Nodes, waiting: list[dict[str, Any]]
    ) -> None:
        """Serve the metrics of this period."""
        size = self.snapshot.size if self.snapshot else settings["size"]
        wishes = self.snapshot.wishes(policy) if self.snapshot and policy else {}
        wait = state.longest_wait(waiting, time.time())
        values = metrics.Values(size, settings["max_size"], nodes, state.job_counts(self.handle), wait)
        try:
            self.server.serve(settings["port"], metrics.text(values, wishes))
        except OSError as error:
            self._log_once(f"metrics.port {settings['port']} can't be served: {error}", "port")

    def _log_once(self, text: str, about: str = "size") -> None:
        """Log a line unless it is the last one about its subject. "" logs nothing and ends the repetition."""
        if text != self.logged.get(about, ""):
            self.logged[about] = text
            if text:
                log(text)

    def _scale(
        self,
        settings: dict[str, Any],
        policy: Policy,
        nodes: state.Nodes,
        waiting: list[dict[str, Any]],
        now: float,
    ) -> float:
        """Bring the cluster to its size; return the seconds after which it grows, infinite unless it waits for that."""
        kube = Kube(server(), settings["namespace"], settings["name"])
        scheduled = now >= self.expires
        if scheduled:
            self._read(kube, settings, policy)
            self.expires = now + policy.period
        snapshot = self._snapshot(policy, nodes, waiting, now)
        decision = self.autoscaler.decide(policy, snapshot)
        if decision.size != snapshot.size and not scheduled:
            # it acts only on what Kubernetes has now
            self._read(kube, settings, policy)
            snapshot = self._snapshot(policy, nodes, waiting, now)
            decision = self.autoscaler.decide(policy, snapshot)
        self.snapshot = snapshot
        if decision.size != snapshot.size:
            self._resize(kube, snapshot, decision)
        elif scheduled:
            self._log_once(f"size {snapshot.size}: {decision.why}")
        return decision.wait

    def _read(self, kube: Kube, settings: dict[str, Any], policy: Policy) -> None:
        self.job = kube.drop_field_ownership(kube.get_job())
        self.cpu = self._cpu(kube, settings) if policy.cpu_target else None

    def _snapshot(self, policy: Policy, nodes: state.Nodes, waiting: list[dict[str, Any]], now: float) -> Snapshot:
        size = int(self.job["spec"]["completions"])
        self._undrain(nodes, size)
        need = queue_need(nodes, size, policy.max, self._requests(waiting, now))
        cpu = None if self.cpu is None else self.cpu / size
        return Snapshot(now, size, nodes, need, len(waiting), self._requested(), cpu)

    def _resize(self, kube: Kube, snapshot: Snapshot, decision: Decision) -> None:
        """Change the size. A cluster shrinks only when no job can start on what goes."""
        # a size that was set by hand may be larger than Flux's table of hosts
        leaving = [rank for rank in range(decision.size, snapshot.size) if rank in snapshot.nodes.all]
        if leaving:
            self._rpc("resource.drain", {"targets": state.to_idset(leaving), "reason": REASON, "mode": "update"})
            nodes = state.nodes(self.handle)
            if any(rank in nodes.used for rank in leaving):
                self._undrain(nodes, snapshot.size)
                self._log_once(f"size {snapshot.size}: a job started on a node that was about to go")
                return
        try:
            self.job = kube.resize(self.job, decision.size)
        except KubeError:
            self._undrain(state.nodes(self.handle), snapshot.size)
            raise
        self.autoscaler.stepped = snapshot.now
        line = f"size {snapshot.size} -> {decision.size}: {decision.why}"
        self._log_once(line)
        self._event(kube, line)

    def _event(self, kube: Kube, text: str) -> None:
        try:
            kube.event(self.job, "Scaled", text)
        except KubeError as error:
            log(f"the event was not recorded: {error}")

    def _undrain(self, nodes: state.Nodes, size: int) -> None:
        """Undrain the ranks below ``size`` that the agent drained."""
        ours = [rank for rank, reason in nodes.drained.items() if reason == REASON and rank < size]
        if ours:
            self._rpc("resource.undrain", {"targets": state.to_idset(ours), "mode": "update"})

    def _rpc(self, topic: str, payload: dict[str, Any]) -> None:
        self.handle.rpc(topic, payload, nodeid=0).get()

    def _requests(self, waiting: list[dict[str, Any]], now: float) -> Iterator[Request]:
        """Yield what the waiting jobs ask for. Each jobspec is looked up once."""
        from flux.job import job_kvs_lookup

        active = {job["id"] for job in waiting}
        self.requests = {job: request for job, request in self.requests.items() if job in active}
        for job in waiting:
            if job["id"] not in self.requests:
                found = job_kvs_lookup(self.handle, job["id"], keys=["jobspec"])
                if not found:
                    continue
                request = parse_resources(found["jobspec"]["resources"])
                self.requests[job["id"]] = replace(request, since=now)
            yield self.requests[job["id"]]

    def _requested(self) -> int:
        """Return the size that minicluster-scale requests; 0 for none."""
        try:
            return int(flux.kvs.get(self.handle, state.REQUESTED_SIZE))
        except (OSError, ValueError, TypeError):
            return 0

    def _cpu(self, kube: Kube, settings: dict[str, Any]) -> float | None:
        """Return how many runners the CPU use would fill, in terms of their request; None when it is unknown."""
        try:
            used = kube.cpu(settings["container"])
        except KubeError as error:
            self._log_once(f"CPU use can't be read: {error}", "cpu")
            return None
        self._log_once("", "cpu")
        return used / float(settings["cpu_request"])


def work(agent: Agent, changes: Changes) -> NoReturn:
    """Look again and again. Raises OSError when the broker is gone."""
    while True:
        begin, used = time.monotonic(), time.process_time()
        try:
            least, most = agent.look(begin)
        except OSError as error:
            if error.errno != errno.ENOSYS:
                raise
            # a module is being reloaded
            log(f"Flux can't be asked now: {error}")
            least = most = RETRY
        pause = max(PAUSE, PAUSE_FACTOR * (time.process_time() - used))
        changes.wait(max(least, pause), max(begin + most - time.monotonic(), 0.1))


def main() -> None:
    """Work until the pod ends."""
    try:
        work(Agent(flux.Flux(), Path(sys.argv[1])), Changes(flux.Flux()))
    except OSError as error:
        # Kubernetes starts this container again, and it waits for the next broker
        sys.exit(f"minicluster-agent: Flux can't be asked: {error}")


if __name__ == "__main__":
    main()
