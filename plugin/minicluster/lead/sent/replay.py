"""Replays jobs on nodes that are all alike, as a scheduler would start them: a model, without Flux.

Reads ``{"jobs": [[submit, priority, nodes, cores, seconds, limit], …], "runs": [[nodes, cores, policy], …]}`` as JSON
from the second line of its input, and prints for each run when the jobs start, and on which ranks, in their order, null
for one that has no room. Cores are those of a node. A limit of 0 is none.
Runs on the client's side, in a process of its own, given to its Python as to that of the lead.
"""

from __future__ import annotations

import heapq
import json
import math
import sys
from typing import Any, NamedTuple, Sequence

from need import Request
from start_times import Planned, Start, Timeline, Waiting
from state import to_idset

#: The first of the waiting jobs at which a scheduler looks each time, as Fluxion by default
LOOKED_JOBS = 32
#: How many jobs that wait have a place that others may not take, by the policy; others have all
RESERVED_JOBS = {"fcfs": 0, "easy": 1}


class Job(NamedTuple):
    """A job of the load; times are seconds."""

    submit: float
    priority: int
    nodes: int
    cores: int
    seconds: float
    limit: float

    def waiting(self, number: int) -> Waiting:
        """Return what it asks its scheduler for."""
        return Waiting(number, Request(self.nodes, self.cores, 0, apart=True), self.limit or math.inf)


def replay(jobs: Sequence[Job], nodes: int, cores: int, policy: str) -> list[tuple[float, str] | None]:
    """Return when each job starts, and its ranks as an idset; None for one that has no room on all nodes."""
    whole = dict.fromkeys(range(nodes), (cores, 0))
    starts: list[tuple[float, str] | None] = [None] * len(jobs)
    arrivals = sorted(range(len(jobs)), key=lambda number: jobs[number].submit)
    queue: list[int] = []
    running: dict[int, Planned] = {}
    ends: list[tuple[float, int]] = []
    while arrivals or ends:
        now = min([jobs[number].submit for number in arrivals[:1]] + [end for end, _ in ends[:1]])
        while ends and ends[0][0] <= now:
            del running[heapq.heappop(ends)[1]]
        while arrivals and jobs[arrivals[0]].submit <= now:
            number = arrivals.pop(0)
            # all nodes are alike
            has_room = jobs[number].nodes <= nodes and jobs[number].cores <= cores
            queue += [number] if has_room else []
        queue.sort(key=lambda number: (-jobs[number].priority, jobs[number].submit, number))
        for number, planned in started(now, whole, [*running.values()], [jobs[n].waiting(n) for n in queue], policy):
            starts[number], running[number] = (now, to_idset(planned.pairs)), planned
            queue.remove(number)
            heapq.heappush(ends, (now + jobs[number].seconds, number))
    return starts


def started(
    now: float, nodes: Any, running: Sequence[Planned], queue: Sequence[Waiting], policy: str
) -> list[tuple[int, Planned]]:
    """Return the waiting jobs that start now, and what each gets."""
    timeline, reserved, begun = Timeline(now, nodes, running), 0, []
    most = RESERVED_JOBS.get(policy, math.inf)
    for job in queue[:LOOKED_JOBS]:
        start: Start = timeline.place(job, latest=now if reserved >= most else math.inf)
        if start.at == now:
            begun.append((job.job, timeline.placed[-1]))
        elif policy == "fcfs":
            break
        else:
            reserved += 1
    return begun


def main(asked: Any) -> list[list[tuple[float, str] | None]]:
    """Replay the jobs in each run."""
    jobs = [Job(*each) for each in asked["jobs"]]
    return [replay(jobs, *run) for run in asked["runs"]]


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.stdin.readline()))))
