"""agent.py SETTINGS: beside the lead's broker, scales the cluster, holds busy pods and serves metrics.

SETTINGS is a JSON file. The agent reads it at each look, so an upgrade takes effect without a restart. It looks at Flux
when something has changed there, and once a period. It asks Kubernetes once a period, and before it changes something
there. It writes each decision about the size to stderr, and records each change of the size as an event of the Job.
What it can't do is in a file for `minicluster status`.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import errno
import json
import math
import os
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Callable, NoReturn

import flux
import metrics
import state
from autoscale import GroupSettings, read_groups
from budget import DisruptionBudget, pods_to_hold
from changes import NEED_STREAMS, START_STREAMS, Changes, pause_after
from kube import Kube, KubeError, server
from log import Once, Problems, log
from scaled_job import ScaledJob
from scaler import Scaler

#: Seconds after which a request that failed is repeated; doubled each time, up to the period
RETRY_SECONDS = 1.0
#: Exit code without a broker: container.sh waits for the next one
BROKER_GONE_CODE = 75
#: Seconds until the next look of a part that is off
OFF = (math.inf, math.inf)


@dataclass
class Retry:
    """A look at Kubernetes that may fail, and when it is tried again."""

    failure: str  #: what the log says before the error
    about: str  #: the log's subject
    pause: float = RETRY_SECONDS
    again: float = -math.inf

    def attempt(
        self, look: Callable[[], tuple[float, float]], now: float, period: float, once: Once
    ) -> tuple[float, float]:
        """Look, unless a failure was too short a time ago.

        Return what the look returns, the least and the most seconds until the next one; after a failure, both are the
        seconds until it is tried again.
        """
        if now < self.again:
            return self.again - now, self.again - now
        try:
            answer = look()
        except KubeError as error:
            once.fail(f"{self.failure}: {error}", self.about)
            wait = min(period, self.pause)
            self.pause, self.again = 2 * wait, now + wait
            return wait, wait
        self.pause = RETRY_SECONDS
        once.fail("", self.about)
        return answer


class Agent:
    """Looks at Flux, and has its parts act."""

    def __init__(self, handle: Any, file: Path, problems: Problems) -> None:
        self.handle, self.file, self.problems = handle, file, problems
        self.once = Once()
        self.budgets: dict[str, DisruptionBudget] = {}  #: by group
        self.scaler = Scaler(handle, self.once)
        self.holding = Retry("the PodDisruptionBudget can't be read or changed now", "budget")
        self.scaling = Retry("the size can't be read or changed now", "scaling")
        self.server = metrics.MetricsServer()
        self.ended = metrics.EndedJobs()

    def look(self, now: float) -> tuple[float, float]:
        """Look at Flux and act, at a time of the monotonic clock.

        Return the seconds until the next look: the least, if something changes, and the most, if nothing does.

        Raises OSError.
        """
        settings = read(self.file)
        period, policy, port = float(settings["period"]), settings["policy"], settings["port"]
        nodes = state.nodes(self.handle)
        # first, because a pod whose job is new can be evicted until then
        held = self._hold(settings, nodes, now) if settings["budget"] else OFF
        waiting = state.waiting_jobs(self.handle) if policy or port else []
        sized = self._scale(settings, nodes, waiting, now) if policy else OFF
        if port:
            self._serve(settings, nodes, waiting)
        else:
            self.server.clear()
        self.problems.write(self.once.failing.values())
        return min(period, held[0], sized[0]), min(period, held[1], sized[1])

    def _hold(self, settings: dict[str, Any], nodes: state.Nodes, now: float) -> tuple[float, float]:
        """Hold the pods that must not be evicted; return the least and the most seconds until the next look."""
        kube, period, always_lead = _kube(settings), float(settings["period"]), settings["budget"]["always_lead"]
        held = {
            group.name: pods_to_hold(self.handle, nodes, group.ranks, always_lead) for group in read_groups(settings)
        }

        def look() -> tuple[float, float]:
            looks = [
                self.budgets.setdefault(name, DisruptionBudget()).hold(kube.of_group(name), pods, now, period)
                for name, pods in held.items()
            ]
            return min(least for least, _ in looks), min(most for _, most in looks)

        return self.holding.attempt(look, now, period, self.once)

    def _scale(
        self, settings: dict[str, Any], nodes: state.Nodes, waiting: list[dict[str, Any]], now: float
    ) -> tuple[float, float]:
        """Bring the cluster to its size; return the least and the most seconds until the next look."""
        look = partial(self.scaler.scale, _kube(settings), settings, nodes, waiting, now)
        return self.scaling.attempt(look, now, float(settings["period"]), self.once)

    def _serve(self, settings: dict[str, Any], nodes: state.Nodes, waiting: list[dict[str, Any]]) -> None:
        """Serve the metrics of this period."""
        jobs = {job.group: job for job in self.scaler.jobs} if settings["policy"] else {}
        own, *others = read_groups(settings)
        of_others = {rank for group in others for rank in group.ranks}
        # the nodes of bursts count with the cluster's own
        groups = [_figures(own, nodes.without(of_others), jobs.get(own.name))]
        groups += [_figures(group, nodes.of(group.ranks), jobs.get(group.name)) for group in others]
        wait = state.longest_wait(waiting, time.time())
        try:
            stats = self.handle.rpc("job-list.job-stats", {}).get()
            counts, queues = self.ended.counts(state.job_counts(self.handle, stats)), stats.get("queues") or []
            self.server.serve(settings["port"], metrics.text(groups, counts, wait, queues))
            self.once.fail("", "port")
        except OSError as error:
            self.once.fail(f"metrics.port {settings['port']} can't be served: {error}", "port")


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
            least = most = RETRY_SECONDS
        pause = pause_after(time.process_time() - used)
        changes.wait(max(least, pause), max(begin + most - time.monotonic(), 0.1))


def read(file: Path) -> dict[str, Any]:
    """Return the settings. Raises OSError."""
    settings: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return settings


def _figures(group: GroupSettings, nodes: state.Nodes, job: ScaledJob | None) -> metrics.GroupFigures:
    """Return the figures of a group and its nodes; without a Job that is scaled, its size is that of the values."""
    size, wishes = (job.size, job.wishes()) if job and job.snapshot else (group.size, {})
    return metrics.GroupFigures(group.name, size, len(group.ranks), nodes, wishes)


def _kube(settings: dict[str, Any]) -> Kube:
    return Kube(server(), settings["namespace"], settings["name"])


def main() -> None:
    """Work until the pod ends."""
    file = Path(sys.argv[1])
    try:
        settings = read(file)
        names = [*NEED_STREAMS, *START_STREAMS] if settings["budget"] else NEED_STREAMS
        groups = [group["name"] for group in settings["groups"]]
        problems = Problems(Path(os.environ["MINICLUSTER_HOME"], "config/run/agent.problem"))
        work(Agent(flux.Flux(), file, problems), Changes(flux.Flux(), names, groups))
    except OSError as error:
        log(f"Flux can't be asked: {error}")
        sys.exit(BROKER_GONE_CODE)


if __name__ == "__main__":
    main()
