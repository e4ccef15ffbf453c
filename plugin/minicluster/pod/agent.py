"""agent.py SETTINGS: beside the lead's broker, scales the cluster by the needs of the queue and serves metrics.

SETTINGS is a JSON file. The agent reads it in each period, so an upgrade takes effect without a restart. Each decision
is a line on stderr, and each change of the size an event of the Job.
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
from autoscale import Autoscaler, Policy, Request, Snapshot, needed_size, parse_resources
from kube import Kube, KubeError, server

REASON = "minicluster: scaling down"


def log(text: str) -> None:
    """Write a line of the log."""
    print(f"minicluster-agent: {text}", file=sys.stderr, flush=True)


def parse_policy(policy: dict[str, Any]) -> Policy:
    """Return the policy of the settings, without keys that only a newer version knows."""
    names = {field.name for field in fields(Policy)}
    return Policy(**{name: value for name, value in policy.items() if name in names})


class Agent:
    """Takes a snapshot in each period, decides and acts."""

    def __init__(self, handle: Any, file: Path) -> None:
        """Open no connection yet."""
        self.handle, self.file = handle, file
        self.autoscaler = Autoscaler()
        self.snapshot: Snapshot | None = None  #: the last one, for metrics while the API server is away
        self.requests: dict[int, Request] = {}  #: by the id of a waiting job
        self.server = metrics.MetricsServer()
        self.logged: dict[str, str] = {}  #: the last line about each subject

    def period(self, now: float) -> float:
        """Do the work of one period, at a time of the monotonic clock; return its length in seconds."""
        settings = json.loads(self.file.read_text(encoding="utf-8"))
        policy = parse_policy(settings["policy"]) if settings["policy"] else None
        nodes = state.nodes(self.handle)
        waiting = state.waiting_jobs(self.handle)
        try:
            if policy:
                self.snapshot = self._scale(settings, policy, nodes.first(settings["max_size"]), waiting, now)
            else:
                self.snapshot = None
        except KubeError as error:
            self._log_once(f"the size can't be read or changed now: {error}")
        if settings["port"]:
            self._serve(settings, policy, nodes, waiting)
        else:
            self.server.clear()
        return float(settings["period"])

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
    ) -> Snapshot:
        kube = Kube(server(), settings["namespace"], settings["name"])
        job = kube.drop_field_ownership(kube.get_job())
        size = int(job["spec"]["completions"])
        self._undrain(nodes, size)
        snapshot = Snapshot(
            now=now,
            size=size,
            nodes=nodes,
            needed=needed_size(nodes, size, policy.max, self._requests(waiting)),
            waiting=len(waiting),
            requested=self._requested(),
            cpu=self._cpu(kube, settings, policy, size),
        )
        wanted, why = self.autoscaler.decide(policy, snapshot)
        if wanted == size:
            self._log_once(f"size {size}: {why}")
        elif self._resize(kube, job, snapshot, wanted):
            self._log_once(f"size {size} -> {wanted}: {why}")
            self._event(kube, job, f"size {size} -> {wanted}: {why}")
        return snapshot

    def _resize(self, kube: Kube, job: dict[str, Any], snapshot: Snapshot, wanted: int) -> bool:
        """Change the size; return whether that was done. A cluster shrinks only when no job can start on what goes."""
        # a size that was set by hand may be larger than Flux's table of hosts
        leaving = [rank for rank in range(wanted, snapshot.size) if rank in snapshot.nodes.all]
        if leaving:
            self._rpc("resource.drain", {"targets": state.to_idset(leaving), "reason": REASON, "mode": "update"})
            nodes = state.nodes(self.handle)
            if any(rank in nodes.used for rank in leaving):
                self._undrain(nodes, snapshot.size)
                self._log_once(f"size {snapshot.size}: a job started on a node that was about to go")
                return False
        try:
            kube.resize(job, wanted)
        except KubeError:
            self._undrain(state.nodes(self.handle), snapshot.size)
            raise
        return True

    def _event(self, kube: Kube, job: dict[str, Any], text: str) -> None:
        try:
            kube.event(job, "Scaled", text)
        except KubeError as error:
            log(f"the event was not recorded: {error}")

    def _undrain(self, nodes: state.Nodes, size: int) -> None:
        """Undrain the ranks below ``size`` that the agent drained."""
        ours = [rank for rank, reason in nodes.drained.items() if reason == REASON and rank < size]
        if ours:
            self._rpc("resource.undrain", {"targets": state.to_idset(ours), "mode": "update"})

    def _rpc(self, topic: str, payload: dict[str, Any]) -> None:
        self.handle.rpc(topic, payload, nodeid=0).get()

    def _requests(self, waiting: list[dict[str, Any]]) -> Iterator[Request]:
        """Yield what the waiting jobs ask for. Each jobspec is looked up once."""
        from flux.job import job_kvs_lookup

        active = {job["id"] for job in waiting}
        self.requests = {job: request for job, request in self.requests.items() if job in active}
        for job in waiting:
            if job["id"] not in self.requests:
                found = job_kvs_lookup(self.handle, job["id"], keys=["jobspec"])
                if not found:
                    continue
                self.requests[job["id"]] = parse_resources(found["jobspec"]["resources"])
            yield self.requests[job["id"]]

    def _requested(self) -> int:
        """Return the size that minicluster-scale requests; 0 for none."""
        try:
            return int(flux.kvs.get(self.handle, state.REQUESTED_SIZE))
        except (OSError, ValueError, TypeError):
            return 0

    def _cpu(self, kube: Kube, settings: dict[str, Any], policy: Policy, size: int) -> float | None:
        """Return the CPU use as a part of the request; None when it is unknown or does not count."""
        if not policy.cpu_target:
            return None
        try:
            used = kube.cpu(settings["container"])
        except KubeError as error:
            self._log_once(f"CPU use can't be read: {error}", "cpu")
            return None
        self._log_once("", "cpu")
        return used / (size * float(settings["cpu_request"]))


def main() -> None:
    """Work period by period, until the pod ends."""
    agent = Agent(flux.Flux(), Path(sys.argv[1]))
    while True:
        begin = time.monotonic()
        period = agent.period(begin)
        time.sleep(max(0.1, begin + period - time.monotonic()))


if __name__ == "__main__":
    main()
