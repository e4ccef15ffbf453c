"""Gangs of three pods on simulated nodes, as the API server's audit log tells of them: one ruler for all ways.

    python -m benchmarks.audited FILE.json [--gangs 1000] [--rounds 1] [--where TEXT]

The work is that of kube-scheduling-perf: many Jobs of three pods, created at once, on simulated nodes that have room
for all. Each way and round has a new control plane (tools/embedded.py); the ways take turns. All figures but the CPU
time come from the audit log. `bound_seconds` is from the first request that creates a Job until the last pod is bound
to a node, `ended_seconds` until the last Job's status says that it has ended; simulated pods end at once.
`apart_seconds`, of a gang, is from the binding of its first pod to that of its last. Requests are those that change
something, of all clients and controllers; CPU is that of API server, etcd, controllers, schedulers and Kueue. The
MiniClusters are all objects of the chart for three nodes, rendered once and given other names: their pods run nothing,
so brokers cost nothing here. On two quiet cores it takes about ten minutes. Needs the programs that `make tools`
builds, and for Coscheduling that of benchmarks/coscheduling.py.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from benchmarks.coscheduling import PROGRAM, coscheduler, join, pod_group
from benchmarks.observing import cpu
from benchmarks.results import Row, medians, save, with_load
from benchmarks.small_jobs import NAMESPACE, create_namespace, job
from tools import kueue_beside
from tools.clients import BIN, CHART, Helm, run_program, until
from tools.embedded import EXIT_CODE, EmbeddedCluster

PODS = 3
NODES = 16
ALL_SECONDS = 600.0
#: Of one `kubectl create`
AT_ONCE_REQUESTS = 100
#: The ways, as the page names them
WAYS = {
    "jobs": "Kubernetes Jobs",
    "coscheduling": "Kubernetes Jobs, Coscheduling",
    "kueue": "Kubernetes Jobs in a queue of Kueue",
    "miniclusters": "a MiniCluster for each gang",
}
CHANGES = ("create", "update", "patch", "delete", "deletecollection")
POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "omitManagedFields": True,
    "rules": [
        {
            "level": "RequestResponse",
            "verbs": CHANGES,
            "resources": [
                {"group": "", "resources": ["pods", "pods/binding"]},
                {"group": "batch", "resources": ["jobs", "jobs/status"]},
            ],
        },
        {"level": "Metadata", "verbs": CHANGES},
    ],
}
CONTAINER = {"image": "none", "resources": {"requests": {"cpu": "100m"}}}
#: A label of Kubernetes that names the Job of a pod
JOB_NAME = "batch.kubernetes.io/job-name"


class AuditedCluster(EmbeddedCluster):
    """A control plane whose API server keeps an audit log."""

    def _run(self, name: str, flags: str) -> None:
        if name == "kube-apiserver":
            (self.work_dir / "policy.json").write_text(json.dumps(POLICY))
            # a log of one file: 1,000 gangs fill the 100 MB after which the API server begins another
            flags += " --audit-policy-file=policy.json --audit-log-path=audit.log --audit-log-maxsize=10000"
        super()._run(name, flags)

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the requests that changed something."""
        with (self.work_dir / "audit.log").open(encoding="utf-8") as lines:
            for line in lines:
                event: dict[str, Any] = json.loads(line)
                if event.get("responseStatus", {}).get("code", 500) < 400:
                    yield event


class Audit(NamedTuple):
    """What the audit log tells of the gangs, in seconds since 1970."""

    created: dict[str, float]  #: each Job
    bound: dict[str, list[float]]  #: the pods of each Job
    ended: dict[str, float]  #: each Job
    requests: int

    def row(self) -> Row:
        """Return the figures."""
        begin = min(self.created.values())
        last = {name: max(times) for name, times in self.bound.items()}
        return {
            "created_seconds": max(self.created.values()) - begin,
            "bound_seconds": max(last.values()) - begin,
            "ended_seconds": max(self.ended.values()) - begin,
            "wait_seconds": statistics.median(at - self.created[name] for name, at in last.items()),
            "apart_seconds": statistics.median(max(times) - min(times) for times in self.bound.values()),
            "requests": self.requests / len(self.created),
        }


def read(events: Iterator[dict[str, Any]], since: float) -> Audit:
    """Read the events after a moment in the namespace of the gangs."""
    created: dict[str, float] = {}
    ended: dict[str, float] = {}
    owners, bindings, requests = {}, {}, 0
    for event in events:
        at = datetime.fromisoformat(event["stageTimestamp"]).timestamp()
        target = event.get("objectRef", {})
        if at < since or target.get("namespace") != NAMESPACE:
            continue
        requests += 1
        answer = event.get("responseObject", {})
        match event["verb"], target["resource"], target.get("subresource"):
            case "create", "jobs", None:
                created[answer["metadata"]["name"]] = at
            case "create", "pods", None:
                owners[answer["metadata"]["name"]] = answer["metadata"]["labels"][JOB_NAME]
            case "create", "pods", "binding":
                bindings[target["name"]] = at
            case _, "jobs", "status" if answer["status"].get("completionTime"):
                ended.setdefault(target["name"], at)
    bound: dict[str, list[float]] = defaultdict(list)
    for pod, at in bindings.items():  # the log may tell of a binding before it tells of the pod
        bound[owners[pod]].append(at)
    return Audit(created, dict(bound), ended, requests)


@cache
def rendered_objects() -> str:
    """Return the chart's objects of a MiniCluster named NAME, as JSON."""
    values = {
        "size": PODS,
        "containers": [{**CONTAINER, "command": "true"}],
        "pod": {"annotations": {EXIT_CODE: "0"}},
    }
    with tempfile.TemporaryDirectory() as folder:
        helm = Helm("helm", Path(folder))
        words = ["--post-renderer", "minicluster", "--skip-tests", "--api-versions", "batch/v1/Job"]
        words += ["--namespace", NAMESPACE, "--kube-version", "1.36.3"]
        text = helm.ok("template", "gang-name", CHART, *words, "--values", "-", stdin=json.dumps(values))
    return json.dumps([each for each in yaml.safe_load_all(text) if each])


def objects(way: str, name: str) -> list[dict[str, Any]]:
    """Return the objects of a gang."""
    if way == "miniclusters":
        made: list[dict[str, Any]] = json.loads(rendered_objects().replace("gang-name", name))
    else:
        made = [job(name, way, CONTAINER, PODS)]
    if way == "coscheduling":
        join(made[0])
        made.insert(0, pod_group(name, PODS))
    for each in made:
        each["metadata"]["namespace"] = NAMESPACE
    return made


@contextmanager
def control_plane(way: str) -> Iterator[tuple[AuditedCluster, dict[str, int]]]:
    """Start what a way needs; yield it with its processes."""
    with tempfile.TemporaryDirectory() as folder, AuditedCluster(BIN, Path(folder, "k8s"), nodes=NODES) as cluster:
        create_namespace(cluster, has_queue=False)
        beside = {"kueue": kueue_beside.kueue, "coscheduling": coscheduler}.get(way)
        with beside(cluster, cluster.work_dir) if beside else nullcontext() as process:
            if way == "kueue":
                cluster.kubectl("label", "namespace", NAMESPACE, f"{kueue_beside.LABEL}=true")
                cluster.create(*kueue_beside.queue(NAMESPACE, 64 * NODES))
            yield cluster, cluster.pids() | ({way: process} if process else {})


def measure(way: str, gangs: int) -> Row:
    """Create all gangs and wait until they have ended; return what the audit log tells."""
    made = [each for number in range(gangs) for each in objects(way, f"gang-{number}")]
    with control_plane(way) as (cluster, processes):
        before, since = {name: cpu(pid) for name, pid in processes.items()}, time.time()
        for first in range(0, len(made), AT_ONCE_REQUESTS):
            cluster.create(*made[first : first + AT_ONCE_REQUESTS])
        done = ("get", "jobs", "-n", NAMESPACE, "-o", "jsonpath={.items[*].status.completionTime}")
        until(lambda: len(cluster.kubectl(*done).split()) == gangs, ALL_SECONDS, f"{gangs} gangs", pause=1)
        used = sum(cpu(pid) - before[name] for name, pid in processes.items() if name != "kwok")
        audit = read(cluster.events(), since)
    if len(audit.ended) != gangs or {*map(len, audit.bound.values())} != {PODS}:
        raise RuntimeError(f"the audit log has {len(audit.ended)} ends of {gangs} Jobs, or too few bindings")
    return {**audit.row(), "cpu_seconds": used / gangs}


def summary(way: str, gangs: int, rounds: Sequence[Row]) -> Row:
    """Return the medians of a way, and the shortest and longest time of its last binding."""
    return {"way": WAYS[way], "gangs": gangs, "rounds": len(rounds), **medians(rounds, "bound_seconds")}


def main() -> None:
    """Measure the ways in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--gangs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--where", default="")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    known: dict[str, list[Row]] = {way: [] for way in WAYS if way != "coscheduling" or PROGRAM.exists()}
    for _ in range(options.rounds):
        for way, rounds in known.items():
            rounds.append(measure(way, options.gangs))
            print(way, rounds[-1], flush=True)
            rows = [summary(each, options.gangs, found) for each, found in known.items() if found]
            save(options.file, with_load(options.where, load), rows)


if __name__ == "__main__":
    run_program(main)
