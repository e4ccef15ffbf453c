"""python -m tools.simulator.trace FILE [SEED]: records what real pods do when their brokers are killed.

The file has facts: the jobs and troubles with their times, how each job ended, and which brokers started anew after
each trouble. `replay` lets the same happen in the model, which must agree.
"""

import itertools
import json
import random
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tools import tenant, testbed
from tools.clients import until
from tools.releases import FluxRelease
from tools.simulator.jobs import Load
from tools.simulator.setting import Setting
from tools.simulator.world import World

TRACED_PODS = 3
#: Of a trace, and seconds until all is well again after one
TROUBLE_TIMES, WELL_SECONDS = 6, 180.0
#: Seconds of a job
WORK_SECONDS = (1.0, 12.0)
VALUES: Mapping[str, Any] = {"size": TRACED_PODS, "logging": {"quiet": True}, "backoffLimit": 1000}
RUNNER: Mapping[str, Any] = {"runFlux": True, "cores": 1}

Facts = dict[str, Any]


def record(file: Path, seed: int) -> None:
    """Disturb a MiniCluster of real pods, and write the facts."""
    values = {**testbed.values_of(VALUES, RUNNER), "state": {"claimName": "state"}, "pod": {"onStop": "requeue"}}
    try:
        with TemporaryDirectory() as folder, testbed.new_volume() as volume, testbed.new_namespace() as namespace:
            cluster = testbed.release(namespace, values, Path(folder))
            testbed.bind(cluster, "state", volume, Path(folder, "state"))
            cluster.install()
            try:
                facts = disturb(cluster, random.Random(seed))  # noqa: S311 - no secret
            finally:
                cluster.uninstall()
    finally:
        tenant.leave(testbed.kubernetes())
    file.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def disturb(cluster: FluxRelease, chance: random.Random) -> Facts:
    """Submit jobs and kill brokers; return the facts."""
    brokers = well(cluster)
    begin = time.time()
    jobs: list[Facts] = []
    troubles: list[Facts] = []
    for number in range(TROUBLE_TIMES):
        for _ in range(3):
            nodes, seconds = chance.choice((1, 1, 2, TRACED_PODS)), round(chance.uniform(*WORK_SECONDS), 1)
            words = (f"--job-name=job-{len(jobs)}", f"-N{nodes}", f"-n{nodes}", "sleep", str(seconds))
            assert cluster.flux(0, "submit", *words), "not accepted"
            jobs.append({"at": time.time() - begin, "nodes": nodes, "seconds": seconds})
        index, at = number % TRACED_PODS, time.time() - begin
        cluster.kill_broker(index)
        after = well(cluster, brokers[index])
        started = [index for index in range(TRACED_PODS) if after[index] != brokers[index]]
        troubles.append({"at": at, "kill": index, "started": started})
        brokers = after
    until(lambda: not cluster.flux(0, "jobs", "-n", "-o", "{id}").strip(), WELL_SECONDS)
    for number, job in enumerate(jobs):
        job["ends"] = ends_of(cluster, f"job-{number}")
    return {"jobs": jobs, "troubles": troubles}


def ends_of(cluster: FluxRelease, name: str) -> list[str]:
    """Return how a job and its copies ended, the oldest first."""
    lines = cluster.flux(0, "jobs", "-a", "-n", f"--name={name}", "-o", "{id.dec} {result}").splitlines()
    return [result.lower() for _, result in sorted((int(job), result) for job, result in map(str.split, lines))]


def well(cluster: FluxRelease, killed: str = "") -> list[str]:
    """Return the brokers once all are nodes, and one that was killed is none of them."""

    def found() -> list[str]:
        brokers = [cluster.broker(index) for index in range(TRACED_PODS)]
        is_up = cluster.up() == f"0-{TRACED_PODS - 1}"
        # one that lost its lead ends a little later
        is_settled = is_up and brokers == [cluster.broker(index) for index in range(TRACED_PODS)]
        return brokers if is_settled and all(brokers) and killed not in brokers else []

    brokers: list[str] = until(found, WELL_SECONDS)
    return brokers


def replay(facts: Facts, seed: int) -> Facts:
    """Let the same happen in the model, and return the facts of that."""
    world = World(seed, Setting(least=TRACED_PODS, most=TRACED_PODS, cores=1, has_budget=False))
    started: list[tuple[float, int]] = []
    begin, start = 120.0, world.flux.start

    def note(rank: int) -> None:
        started.append((world.loop.now - begin, rank))
        start(rank)

    world.flux.start = note  # type: ignore[method-assign]
    for job in facts["jobs"]:
        world.loop.at(begin + job["at"], partial(world.submit, Load(job["nodes"], 1, job["seconds"])))
    for trouble in facts["troubles"]:
        world.loop.at(begin + trouble["at"], partial(world.kubernetes.kill, trouble["kill"]))
    world.run(begin + facts["troubles"][-1]["at"])
    try:
        world.settle()
    finally:
        world.close()
    ends: dict[int, list[str]] = {}
    for job in world.flux.jobs.values():
        ends.setdefault(job.lineage, []).append(job.state)
    times = [trouble["at"] for trouble in facts["troubles"]] + [float("inf")]
    after = [sorted({rank for at, rank in started if a <= at < b}) for a, b in itertools.pairwise(times)]
    troubles = [{**trouble, "started": ranks} for trouble, ranks in zip(facts["troubles"], after, strict=True)]
    jobs = [{**job, "ends": found} for job, (_, found) in zip(facts["jobs"], sorted(ends.items()), strict=True)]
    return {"jobs": jobs, "troubles": troubles}


def compared(facts: Facts) -> Facts:
    """Return what a model must agree on: how each job ended at last, and which brokers started anew, in this order."""
    last = [job["ends"][-1] for job in facts["jobs"]]
    return {"ends": last, "started": [trouble["started"] for trouble in facts["troubles"]]}


if __name__ == "__main__":
    record(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else 1)
