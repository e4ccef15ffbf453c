"""How long Kubernetes' own controllers take for an Indexed Job of many pods, without real Kubernetes nodes.

    python -m benchmarks.jobs FILE.json [--pods 100 1000 5000] [--qps 20 200]

API server, etcd, controllers and scheduler are the real ones of tools/embedded.py; the Kubernetes nodes are simulated,
and their pods run nothing. Each row is an install of the chart, with a number of pods (`pods`) and a limit on the
controllers' requests a second (`qps`; Kubernetes' default is 20). It has the seconds from `helm install` until all pods
are created and bound to a Kubernetes node; the requests to the API server until all are ready; and the bytes of the
Job, of a pod and of the EndpointSlices. Needs the programs that `make tools` builds, and minicluster in PATH.
"""

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.results import Row, save
from benchmarks.simulated_nodes import room_for
from tools.clients import run_program, until
from tools.embedded import EmbeddedCluster
from tools.releases import Release

PODS_SECONDS = 3600.0
COUNTED = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
#: Requests that keep a connection open or only ask for health: not counted.
OPEN = ("WATCH", "CONNECT")


def requests(metrics: str) -> Counter[str]:
    """Return how often each verb was used on each resource, from the API server's metrics.

    >>> requests('apiserver_request_total{code="201",resource="pods",subresource="",verb="POST"} 4')
    Counter({'POST pods': 4})
    """
    counts: Counter[str] = Counter()
    for labels, value in COUNTED.findall(metrics):
        found = dict(LABEL.findall(labels))
        if found["resource"] and found["resource"] != "leases" and found["verb"] not in OPEN:
            name = "/".join(filter(None, (found["resource"], found.get("subresource"))))
            counts[f"{found['verb']} {name}"] += int(float(value))
    return counts


def last(stamps: Iterable[str]) -> float:
    """Return the last of some of Kubernetes' times, which are in whole seconds."""
    return max(datetime.fromisoformat(stamp).timestamp() for stamp in stamps)


def bound(pod: dict[str, Any]) -> str:
    """Return when a pod was bound to a node."""
    conditions = {condition["type"]: condition for condition in pod["status"]["conditions"]}
    return str(conditions["PodScheduled"]["lastTransitionTime"])


def size_of(cluster: EmbeddedCluster, *words: str) -> list[int]:
    """Return the bytes of objects as the API server sends them, without the history of their fields."""
    found = cluster.get(*words)
    return [len(json.dumps(item)) for item in found.get("items", [found])]


def measure(release: Release, cluster: EmbeddedCluster, pods: int) -> Row:
    """Install a MiniCluster, remove it, and return the figures."""
    before = requests(cluster.kubectl("get", "--raw=/metrics"))
    begin = time.time()
    release.install(size=pods, containers=[{"image": "none", "resources": {"requests": {"cpu": "100m"}}}])
    installed = time.time()
    until(lambda: release.get("job")["status"].get("ready") == pods, PODS_SECONDS, f"{pods} pods", pause=0.5)
    items = release.items("pods")
    asked = requests(cluster.kubectl("get", "--raw=/metrics")) - before
    service = ("-n", release.namespace, "-l", "kubernetes.io/service-name")
    slices = size_of(cluster, "endpointslices.discovery.k8s.io", *service)
    job = size_of(cluster, "job", release.name, "-n", release.namespace)
    release.ok("uninstall")
    until(lambda: not cluster.kubectl("get", "pods", "-n", release.namespace, "-o", "name"), PODS_SECONDS, pause=1)
    return {
        "pods": pods,
        "qps": cluster.qps,
        "installed_seconds": installed - begin,
        "created_seconds": last(pod["metadata"]["creationTimestamp"] for pod in items) - begin,
        "bound_seconds": last(map(bound, items)) - begin,
        "requests": sum(asked.values()),
        "slice_writes": asked["POST endpointslices"] + asked["PUT endpointslices"],
        "slices": len(slices),
        "slices_bytes": sum(slices),
        "job_bytes": job[0],
        "pod_bytes": max(len(json.dumps(pod)) for pod in items),
    }


def main() -> None:
    """Measure each number of pods with each rate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--pods", type=int, nargs="+", default=[100, 1000, 5000])
    parser.add_argument("--qps", type=int, nargs="+", default=[20, 200])
    parser.add_argument("--where", default="")
    options = parser.parse_args()
    rows: list[Row] = []
    for qps in options.qps:
        with room_for(max(options.pods), qps) as (cluster, helm):
            for pods in options.pods:
                namespace = f"bench-{pods}"
                cluster.kubectl("create", "namespace", namespace)
                rows.append(measure(Release(helm, cluster, namespace), cluster, pods))
                print(rows[-1], flush=True)
                save(options.file, options.where, rows)


if __name__ == "__main__":
    run_program(main)
