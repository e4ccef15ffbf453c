"""How long a MiniCluster with kept state is without its lead, when the lead's broker or pod is killed again and again.

    python -m benchmarks.losses FILE.json [--kills 30] [--pods 5] [--scheduler sched-simple]

The MiniCluster has 3 nodes. Jobs are held in its queue, and each must be there at the end. A time is from the kill
until a job has run on all nodes. `--pods` kills the lead's pod in place of its broker: first with the counts by which
the Job controller doubles its back-off set to 0 on the pod before, which takes the right to patch pods, then without.
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
def installed(scheduler: str, folder: Path) -> Iterator[FluxRelease]:
    """Install a MiniCluster with its state on a claim, and remove it."""
    values = {"size": NODES, "state": {"claimName": "state"}, "logging": {"quiet": True}}
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


def measure(cluster: FluxRelease, what: str, kills: int, kill: Callable[[], None]) -> Row:
    """Kill the lead some times; return the figures."""
    held = {cluster.flux(0, "submit", "--urgency=0", "true").strip() for _ in range(HELD_JOBS)}
    cluster.flux(0, "kvs", "put", "--sync", "benchmark=1")
    times = []
    for _ in range(kills):
        begin = time.monotonic()
        kill()
        until(lambda: runs_jobs(cluster), RETURN_SECONDS, pause=0.1)
        times.append(time.monotonic() - begin)
        print(f"{what}: {times[-1]:.1f} s", flush=True)
    known = set(cluster.flux(0, "jobs", "-n", "-o", "{id}").split())
    ordered = sorted(times)
    return {
        "what": what,
        "kills": kills,
        "median_seconds": statistics.median(times),
        "p95_seconds": ordered[max(0, -(-95 * kills // 100) - 1)],
        "longest_seconds": ordered[-1],
        "jobs": HELD_JOBS,
        "lost": len(held - known),
    }


def main() -> None:
    """Measure, and write the figures after each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--pods", type=int, default=5)
    parser.add_argument("--scheduler", choices=testbed.SCHEDULERS, nargs="+", default=testbed.SCHEDULERS)
    parser.add_argument("--where", default="")
    options = parser.parse_args()
    rows: list[Row] = []

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
