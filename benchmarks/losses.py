"""How long a MiniCluster is not whole, when its lead's broker or pod, or a whole container, is killed.

    python -m benchmarks.losses FILE.json [--kills 30] [--pods 5] [--containers 20] [--scheduler sched-simple]

The MiniCluster has 3 nodes. Jobs are held in its queue, and each must be there at the end. A time is from the kill
until a job has run on all nodes. `--pods` kills the lead's pod in place of its broker: first with the counts by which
the Job controller doubles its back-off set to 0 on the pod before, which takes the right to patch pods, then without.
`--containers` kills all processes of a worker's container, then of the lead's, and installs anew before the next two:
Kubernetes waits longer before each further start in one pod. That is measured with the state on a claim and without,
with Kubernetes 1.35 or later, and the pods on this machine.
The state is a folder of the Kubernetes node. Needs what the pods' tests need (CONTRIBUTING.md).
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.results import Row, save
from tools import testbed
from tools.clients import run_program, until
from tools.releases import FluxRelease

NODES, HELD_JOBS = 3, 20
RETURN_SECONDS = 700.0
COUNTS = ("job-index-failure-count", "job-index-ignored-failure-count")


@contextmanager
def installed(scheduler: str, folder: Path, *, keeps: bool = True) -> Iterator[FluxRelease]:
    """Install a MiniCluster, with its state on a claim if it ``keeps`` it, and remove it."""
    values = {"size": NODES, "logging": {"quiet": True}, **({"state": {"claimName": "state"}} if keeps else {})}
    with testbed.new_volume() as volume, testbed.new_namespace() as namespace:
        words = testbed.values_of(values, {"cores": 1}, scheduler=scheduler)
        cluster = testbed.release(namespace, words, folder)
        testbed.bind(cluster, "state", volume, folder / "state")
        cluster.install()
        try:
            cluster.wait_for(f"0-{NODES - 1}")
            yield cluster
        finally:
            cluster.uninstall()


def runs_jobs(cluster: FluxRelease) -> bool:
    """Return whether a job runs on all nodes now."""
    return cluster.flux(0, "run", "--urgency=31", f"-N{NODES}", "--quiet", "echo", "again") == "again\n" * NODES


def kill_pod(cluster: FluxRelease, *, reset: bool) -> None:
    """Kill the lead's pod; with ``reset`` as if it were the first that is lost."""
    pod = cluster.pod(0)
    if reset:
        counts = [f"batch.kubernetes.io/{count}=0" for count in COUNTS]
        cluster.kubectl("annotate", "--overwrite", "pod", pod, *counts)
    cluster.kubectl("delete", "pod", pod, "--grace-period=0", "--force", "--wait=false")
    until(lambda: cluster.pod(0) != pod, RETURN_SECONDS)


def hold(cluster: FluxRelease) -> set[str]:
    """Submit jobs that are held, and save them; return their ids."""
    held = {cluster.flux(0, "submit", "--urgency=0", "true").strip() for _ in range(HELD_JOBS)}
    cluster.flux(0, "kvs", "put", "--sync", "benchmark=1")
    return held


def lost(cluster: FluxRelease, held: set[str]) -> int:
    """Return how many of the held jobs are gone."""
    return len(held - set(cluster.flux(0, "jobs", "-n", "-o", "{id}").split()))


def seconds_of(cluster: FluxRelease, what: str, kill: Callable[[], None]) -> float:
    """Kill something; return the seconds until a job runs on all nodes."""
    begin = time.monotonic()
    kill()
    until(lambda: runs_jobs(cluster), RETURN_SECONDS, pause=0.1)
    seconds = time.monotonic() - begin
    print(f"{what}: {seconds:.1f} s", flush=True)
    return seconds


def figures(what: str, times: list[float], jobs: int, gone: int) -> Row:
    """Return the row of some kills."""
    ordered = sorted(times)
    return {
        "what": what,
        "kills": len(times),
        "median_seconds": statistics.median(times),
        "p95_seconds": ordered[max(0, -(-95 * len(times) // 100) - 1)],
        "longest_seconds": ordered[-1],
        "jobs": jobs,
        "lost": gone,
    }


def measure(cluster: FluxRelease, what: str, kills: int, kill: Callable[[], None]) -> Row:
    """Kill the lead some times; return the figures."""
    held = hold(cluster)
    times = [seconds_of(cluster, what, kill) for _ in range(kills)]
    return figures(what, times, HELD_JOBS, lost(cluster, held))


def measure_containers(scheduler: str, rounds: int, *, keeps: bool) -> list[Row]:
    """Kill the container of a worker and of the lead in as many MiniClusters; return the figures of both."""
    where = "the queue on a claim" if keeps else "the queue in the pod"
    times: dict[str, list[float]] = {f"the container of {who}, {where}": [] for who in ("a worker", "the lead")}
    gone = dict.fromkeys(times, 0)
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder, installed(scheduler, Path(folder), keeps=keeps) as cluster:
            held = hold(cluster)
            for index, what in zip((1, 0), times, strict=True):
                times[what].append(seconds_of(cluster, what, partial(cluster.kill_container, index)))
                gone[what] += lost(cluster, held)
    return [figures(what, found, HELD_JOBS * rounds, gone[what]) for what, found in times.items()]


def main() -> None:
    """Measure, and write the figures after each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--pods", type=int, default=5)
    parser.add_argument("--containers", type=int, default=20)
    parser.add_argument("--scheduler", choices=testbed.SCHEDULERS, nargs="+", default=testbed.SCHEDULERS)
    parser.add_argument("--where", default="")
    options = parser.parse_args()
    rows: list[Row] = []

    for keeps in (True, False) if options.containers else ():
        rows += measure_containers(options.scheduler[-1], options.containers, keeps=keeps)
        save(options.file, options.where, rows)

    def add(cluster: FluxRelease, what: str, kills: int, kill: Callable[[], None]) -> None:
        if kills:
            rows.append(measure(cluster, what, kills, kill))
            save(options.file, options.where, rows)

    for scheduler in options.scheduler:
        with tempfile.TemporaryDirectory() as folder, installed(scheduler, Path(folder)) as cluster:
            add(cluster, f"the broker, {scheduler}", options.kills, partial(cluster.kill_broker, 0))
            if scheduler == options.scheduler[-1]:
                add(cluster, "its pod, counts reset", options.pods, partial(kill_pod, cluster, reset=True))
                add(cluster, "its pod", options.pods, partial(kill_pod, cluster, reset=False))


if __name__ == "__main__":
    run_program(main)
