"""What many MiniClusters in one namespace cost: each of them, the control plane, and the commands that look at all.

    python -m benchmarks.many FILE.json [--clusters 100 1000] [--pods 2] [--at-once 2]

API server, etcd, controllers and scheduler are the real ones of tools/embedded.py; the Kubernetes nodes are simulated,
and their pods run nothing. Each row installs a number of MiniClusters by Helm, some at once, looks at them, changes the
size of one, and removes all. `api_seconds` and `controllers_seconds` are CPU seconds of these programs for each
MiniCluster, from its install until all are ready; so is `client_seconds` of Helm and the post-renderer. Needs the
programs that `make tools` builds, and minicluster in PATH.
"""

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.observing import cpu
from benchmarks.results import Row, save
from benchmarks.simulated_nodes import room_for
from benchmarks.sizes import cpu_of_children
from tools.clients import ROOT, Helm, run_program, until
from tools.embedded import EmbeddedCluster
from tools.releases import Release

NAMESPACE = "many"
ALL_SECONDS = 3600.0
#: A pod that 250 fit of on a node
VALUES = {"containers": [{"image": "none", "resources": {"requests": {"cpu": "100m"}}}], "interactive": True}


def timed(act: Callable[[], object]) -> float:
    """Return how many seconds something takes."""
    begin = time.monotonic()
    act()
    return time.monotonic() - begin


def measure(cluster: EmbeddedCluster, helm: Helm, count: int, pods: int, at_once: int) -> Row:
    """Install a number of MiniClusters, look at them, remove them, and return the figures."""
    releases = [Release(helm, cluster, NAMESPACE, f"mc-{number}") for number in range(count)]
    before = {name: cpu(pid) for name, pid in cluster.pids().items()}
    client, begin = cpu_of_children(), time.monotonic()
    with ThreadPoolExecutor(at_once) as pool:
        [*pool.map(lambda one: one.install(size=pods, maxSize=pods + 1, **VALUES), releases)]
    installed, client = time.monotonic() - begin, cpu_of_children() - client
    ready = ("get", "jobs", "-n", NAMESPACE, "-o", "jsonpath={.items[*].status.ready}")
    until(lambda: cluster.kubectl(*ready).split().count(str(pods)) == count, ALL_SECONDS, f"{count} Jobs", pause=1)
    is_ready = time.monotonic() - begin
    used = {name: cpu(pid) - before[name] for name, pid in cluster.pids().items()}
    last = releases[-1].name
    seconds = {
        "list_seconds": timed(lambda: cluster.output("minicluster", "list", "-n", NAMESPACE)),
        "status_seconds": timed(lambda: cluster.output("minicluster", "status", last, "-n", NAMESPACE)),
        "scale_seconds": timed(lambda: cluster.output("minicluster", "scale", last, str(pods + 1), "-n", NAMESPACE)),
    }
    begin = time.monotonic()
    with ThreadPoolExecutor(at_once) as pool:
        [*pool.map(lambda one: one.ok("uninstall"), releases)]
    until(lambda: not cluster.kubectl("get", "pods", "-n", NAMESPACE, "-o", "name"), ALL_SECONDS, pause=1)
    return {
        "clusters": count,
        "pods": count * pods,
        "installed_seconds": installed,
        "ready_seconds": is_ready,
        "client_seconds": client / count,
        "api_seconds": (used["kube-apiserver"] + used["etcd"]) / count,
        "controllers_seconds": (used["kube-controller-manager"] + used["kube-scheduler"]) / count,
        **seconds,
        "removed_seconds": time.monotonic() - begin,
    }


def main() -> None:
    """Measure each number of MiniClusters."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--clusters", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--pods", type=int, default=2)
    parser.add_argument("--at-once", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--where", default="")
    options = parser.parse_args()
    rows: list[Row] = []
    for count in options.clusters:
        with room_for(max(options.clusters) * (options.pods + 1)) as (cluster, helm):
            cluster.env["HELM_PLUGINS"] = str(ROOT)
            cluster.kubectl("create", "namespace", NAMESPACE)
            rows.append(measure(cluster, helm, count, options.pods, options.at_once))
            print(rows[-1], flush=True)
            save(options.file, options.where, rows)


if __name__ == "__main__":
    run_program(main)
