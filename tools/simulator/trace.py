"""python -m tools.simulator.trace FILE [SEED]: records what real pods do when they are disturbed, and at last grow.

The file has facts: the jobs and troubles with their times, how each job ended, which brokers started anew after each
trouble, and the sizes for a job that needs one node more. `replay` lets the same happen in the model, which must agree.
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
#: The troubles of a trace, of one pod after the other: a killed broker, a deleted pod, a node that a person drains
KINDS = ("kill", "kill", "kill", "delete", "drain", "delete", "drain", "delete")
#: Seconds until all is well again after one
WELL_SECONDS = 180.0
#: Seconds of a job; after which waiting jobs let the cluster grow, longer than they wait here; of idle nodes
WORK_SECONDS, BACKLOG_SECONDS, IDLE_SECONDS = (1.0, 12.0), 60.0, 10.0
VALUES: Mapping[str, Any] = {
    "size": TRACED_PODS,
    "maxSize": TRACED_PODS + 1,
    "autoscaling": {
        "enabled": True,
        "min": TRACED_PODS,
        "backlogSeconds": BACKLOG_SECONDS,
        "idleSeconds": IDLE_SECONDS,
    },
    "logging": {"quiet": True},
    "backoffLimit": 1000,
}
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
    """Submit jobs and make trouble; return the facts."""
    brokers = well(cluster)
    begin = time.time()
    jobs: list[Facts] = []
    troubles: list[Facts] = []

    def submit(nodes: int, seconds: float) -> None:
        words = (f"--job-name=job-{len(jobs)}", f"-N{nodes}", f"-n{nodes}", "sleep", str(seconds))
        assert cluster.flux(0, "submit", *words), "not accepted"
        jobs.append({"at": time.time() - begin, "nodes": nodes, "seconds": seconds})

    def none_waits() -> bool:
        return not cluster.flux(0, "jobs", "-n", "-o", "{id}").strip()

    for number, kind in enumerate(KINDS):
        # the jobs of a drained node run on the others
        most = TRACED_PODS - (kind == "drain")
        for _ in range(3):
            submit(chance.choice((1, 1, 2, most)), round(chance.uniform(*WORK_SECONDS), 1))
        index, at = number % TRACED_PODS, time.time() - begin
        make_trouble(cluster, kind, index)
        if kind == "drain":
            until(none_waits, WELL_SECONDS)
            make_trouble(cluster, "undrain", index)
        after = well(cluster, "" if kind == "drain" else brokers[index])
        started = [index for index in range(TRACED_PODS) if after[index] != brokers[index]]
        troubles.append({"at": at, "kind": kind, "index": index, "until": time.time() - begin, "started": started})
        brokers = after
    until(none_waits, WELL_SECONDS)
    submit(TRACED_PODS + 1, 1.0)
    growth: Facts = {"at": time.time() - begin, "sizes": [TRACED_PODS]}

    def is_small_again() -> bool:
        size = int(cluster.get("job")["spec"]["completions"])
        growth["sizes"] += [size] if size != growth["sizes"][-1] else []
        return len(growth["sizes"]) > 1 and size == TRACED_PODS

    until(is_small_again, BACKLOG_SECONDS + WELL_SECONDS)
    for number, job in enumerate(jobs):
        job["ends"] = ends_of(cluster, f"job-{number}")
    return {"jobs": jobs, "troubles": troubles, "growth": growth}


def make_trouble(cluster: FluxRelease, kind: str, index: int) -> None:
    """Disturb a pod, or its node of Flux."""
    if kind == "kill":
        cluster.kill_broker(index)
    elif kind == "delete":
        cluster.kubectl("delete", "pod", cluster.pod(index), "--wait=false")
    else:
        cluster.flux(0, "resource", kind, str(index))


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
    least, most = TRACED_PODS, TRACED_PODS + 1
    setting = Setting(least, most, cores=1, backlog=BACKLOG_SECONDS, idle=IDLE_SECONDS, has_budget=False)
    world = World(seed, setting)
    started: list[tuple[float, int]] = []
    sizes: list[int] = []
    begin, start, write = 120.0, world.flux.start, world.kubernetes.write

    def note(rank: int) -> None:
        started.append((world.loop.now - begin, rank))
        start(rank)

    def note_size(thing: dict[str, Any]) -> None:
        write(thing)
        size = world.kubernetes.own.size
        sizes.extend([size] if size != [least, *sizes][-1] else [])

    world.flux.start, world.kubernetes.write = note, note_size  # type: ignore[method-assign]
    for job in facts["jobs"]:
        world.loop.at(begin + job["at"], partial(world.submit, Load(job["nodes"], 1, job["seconds"])))
    does = {"kill": world.kubernetes.kill, "delete": world.delete, "drain": world.drain}
    for trouble in facts["troubles"]:
        world.loop.at(begin + trouble["at"], partial(does[trouble["kind"]], trouble["index"]))
        if trouble["kind"] == "drain":
            world.loop.at(begin + trouble["until"], partial(world.drain, trouble["index"]))
    world.run(begin + facts["growth"]["at"])
    try:
        world.settle()
    finally:
        world.close()
    ends: dict[int, list[str]] = {}
    for job in world.flux.jobs.values():
        ends.setdefault(job.lineage, []).append(job.state)
    times = [trouble["at"] for trouble in facts["troubles"]] + [float("inf")]
    own = [(at, rank) for at, rank in started if rank < least]
    after = [sorted({rank for at, rank in own if a <= at < b}) for a, b in itertools.pairwise(times)]
    troubles = [{**trouble, "started": ranks} for trouble, ranks in zip(facts["troubles"], after, strict=True)]
    jobs = [{**job, "ends": found} for job, (_, found) in zip(facts["jobs"], sorted(ends.items()), strict=True)]
    return {"jobs": jobs, "troubles": troubles, "growth": {**facts["growth"], "sizes": [least, *sizes]}}


def compared(facts: Facts) -> Facts:
    """Return what a model must agree on: how each job ended at last, the brokers that started anew, and the sizes."""
    last = [job["ends"][-1] for job in facts["jobs"]]
    # a pod that leaves may take until the next trouble
    started = [trouble["started"] for trouble in facts["troubles"] if trouble["started"]]
    return {"ends": last, "started": started, "sizes": facts["growth"]["sizes"]}


if __name__ == "__main__":
    record(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else 1)
