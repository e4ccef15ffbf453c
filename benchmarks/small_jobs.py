"""Small jobs by Flux, beside Kubernetes Jobs, Jobs in a queue of Kueue, and one Indexed Job.

    python -m benchmarks.small_jobs FILE.json [--jobs 1000] [--real 100] [--where TEXT]

Simulated: jobs that run nothing. Flux has its simulated execution, in a broker by the flux in PATH or
$FLUX_PREFIX/bin; the others have the real API server, controllers and scheduler of tools/embedded.py and simulated
Kubernetes nodes. Jobs a second are from the first submission until all have ended. Real: jobs of `true` on a node of
the cluster that MINICLUSTER_TEST_KUBECONFIG names; without one there are none. Needs the programs that `make tools`
builds.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.clusters import MeasuredCluster
from benchmarks.results import Row, save
from tools import testbed
from tools.clients import BIN, KubernetesCluster, TooLateError, output, run_program, until
from tools.embedded import EXIT_CODE, EmbeddedCluster
from tools.kueue_beside import LABEL, LOCAL_QUEUE, kueue, queue
from tools.tenant import PLAIN

NAMESPACE = "small-jobs"
ALL_SECONDS = 1800.0
QUOTA_CPUS = 500
#: The ways, as the page names them
WAYS = {
    "flux": "Flux",
    "jobs": "Kubernetes Jobs",
    "kueue": "Kubernetes Jobs in a queue of Kueue",
    "indexed": "one Indexed Job",
}
#: Runs in a broker: tells the nanoseconds of $1 simulated jobs
FLUX = """
begin=$(date +%s%N)
flux submit --quiet --cc=1-$1 --setattr=exec.test.run_duration=1ms -n1 true && flux queue drain
echo $(($(date +%s%N) - begin))
"""


def job(name: str, way: str, container: dict[str, Any], count: int | None = None) -> dict[str, Any]:
    """Return a Job of one pod, or an Indexed one of ``count``; simulated pods end at once."""
    labels = {"kueue.x-k8s.io/queue-name": LOCAL_QUEUE} if way == "kueue" else {}
    indexed = {"completionMode": "Indexed", "completions": count, "parallelism": count} if count else {}
    template = {
        "metadata": {"annotations": {EXIT_CODE: "0"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", **container}]},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {**indexed, "backoffLimit": 0, "template": template, "suspend": bool(labels)},
    }


def create(cluster: KubernetesCluster, namespace: str, way: str, count: int, container: dict[str, Any]) -> None:
    """Create the Jobs of a way: jobs, kueue or indexed."""
    made = [job("all", way, container, count)] if way == "indexed" else []
    made = made or [job(f"job-{number}", way, container) for number in range(count)]
    for each in made:
        each["metadata"]["namespace"] = namespace
    cluster.create(*made)


def timed(cluster: KubernetesCluster, namespace: str, way: str, count: int, container: dict[str, Any]) -> float:
    """Create Jobs, wait until so many pods have succeeded, remove them, and return the seconds until then."""
    begin = time.monotonic()
    create(cluster, namespace, way, count, container)

    def done() -> bool:
        found = cluster.kubectl("get", "jobs", "-n", namespace, "-o", "jsonpath={.items[*].status.succeeded}")
        return sum(map(int, found.split())) == count

    while not done():
        if time.monotonic() > begin + ALL_SECONDS:
            raise TooLateError(f"{count} jobs did not end within {ALL_SECONDS:g} s")
        time.sleep(0.25)
    seconds = time.monotonic() - begin
    remove(cluster, namespace)
    return seconds


def remove(cluster: KubernetesCluster, namespace: str) -> None:
    """Remove all Jobs and their pods."""
    cluster.kubectl("delete", "jobs", "--all", "-n", namespace, "--wait=false")
    until(lambda: not cluster.kubectl("get", "jobs,pods", "-n", namespace, "-o", "name"), ALL_SECONDS, pause=1)


@contextmanager
def simulated() -> Iterator[EmbeddedCluster]:
    """Start the control plane and Kueue, with a namespace that has a queue for all."""
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedCluster(BIN, Path(folder, "k8s"), nodes=8) as cluster,
        kueue(cluster, cluster.work_dir),
    ):
        create_namespace(cluster, has_queue=True)
        yield cluster


def create_namespace(cluster: EmbeddedCluster, *, has_queue: bool) -> None:
    """Create the namespace of the jobs, with a queue of Kueue or without."""
    labels = {LABEL: "true"} if has_queue else {}
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}})
    if has_queue:
        cluster.create(*queue(NAMESPACE, QUOTA_CPUS))


def by_flux(count: int) -> float:
    """Return the seconds of simulated jobs in a broker."""
    prefix = os.environ.get("FLUX_PREFIX", "")
    flux = f"{prefix}/bin/flux" if prefix else "flux"
    return int(output(flux, "start", "--test-size=1", "sh", "-c", FLUX, "sh", str(count), seconds=ALL_SECONDS)) / 1e9


def real(count: int) -> Iterator[tuple[str, int, float]]:
    """Yield each way, its jobs and their seconds on a real node; Flux has ten times as many."""
    image = testbed.images()["containers"][0]["image"]
    container = {"image": image, "imagePullPolicy": "IfNotPresent", "command": ["true"]}
    with testbed.new_namespace(world=PLAIN) as namespace:
        cluster = testbed.kubernetes()
        lead = MeasuredCluster({"size": 1}, ["kubectl", "-n", namespace], namespace)
        lead.flux("submit", "--quiet", f"--cc=1-{10 * count}", "-n1", "true")
        lead.flux("queue", "drain")
        lines = lead.flux("jobs", "-a", "-n", "--count=0", "-o", "{t_submit} {t_inactive}").splitlines()
        times = [[float(stamp) for stamp in line.split()] for line in lines]
        yield "flux", 10 * count, max(end for _, end in times) - min(begin for begin, _ in times)
        lead.remove()
        for way in ("jobs", "indexed"):
            yield way, count, timed(cluster, namespace, way, count, container)


def main() -> None:
    """Measure each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--real", type=int, default=100)
    parser.add_argument("--where", default="")
    options = parser.parse_args()
    rows: list[Row] = []

    def note(nodes: str, way: str, count: int, seconds: float) -> None:
        rate = {"seconds": seconds, "jobs_per_second": count / seconds}
        rows.append({"nodes": nodes, "way": WAYS[way], "jobs": count, **rate})
        print(rows[-1], flush=True)
        save(options.file, options.where, rows)

    note("simulated", "flux", options.jobs, by_flux(options.jobs))
    with simulated() as cluster:
        for way in ("jobs", "kueue", "indexed"):
            container = {"image": "none", "resources": {"requests": {"cpu": "10m"}}}
            seconds = timed(cluster, NAMESPACE, way, options.jobs, container)
            note("simulated", way, options.jobs, seconds)
    if os.environ.get(testbed.KUBECONFIG):
        for way, count, seconds in real(options.real):
            note("real", way, count, seconds)


if __name__ == "__main__":
    run_program(main)
