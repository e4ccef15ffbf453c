"""How fast a MiniCluster grows and shrinks, and a picture of a run.

    python -m benchmarks.elasticity scale [--runs 10] [--nodes 4]
    python -m benchmarks.elasticity need [--runs 10] [--nodes 4] [--scheduler sched-simple]
    python -m benchmarks.elasticity picture FILE.svg [--jobs 40] [--seconds 8]

`scale` times, in turns: new nodes of a MiniCluster, from the change of its Job's size until Flux has them (flux); as
many bare pods of the same images that start Flux with the shortest possible script (bare); and as many that only print
a line (echo). Times are Flux's own and the container runtime's.
`need` times a job that needs new nodes, with the defaults of autoscaling: from its submission until the size changes,
from then until the last of its nodes has printed a line, and the sum. It also times echo and bare, as `scale` does.
`picture` lets the autoscaler follow a queue of one-node jobs from 1 node to 8 and back, and draws what Flux and
Kubernetes recorded. The cluster's clock must be this machine's. Needs kubectl, helm and minicluster in PATH.
The images are the chart's defaults, or those that MINICLUSTER_TEST_IMAGE and MINICLUSTER_TEST_VIEW_IMAGE name.
"""

import argparse
import json
import statistics
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.clusters import NAME, BareCluster, MeasuredCluster, wait
from benchmarks.steps import summed, svg
from tools.clients import output, run, run_program
from tools.testbed import SCHEDULERS


def echo(job: dict[str, Any], nodes: int, kubectl: list[str]) -> float:
    """Return the seconds from making a Job of pods until the last of them has printed a line."""
    name = f"{NAME}-echo"
    pod = json.loads(json.dumps(job["spec"]["template"]))
    container = pod["spec"]["containers"][0]
    container.pop("startupProbe")
    container["command"] = ["echo", "started"]
    pod["metadata"] = {}
    spec = {"completionMode": "Indexed", "completions": nodes, "parallelism": nodes, "template": pod}
    manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
    begin = time.time()
    output(*kubectl, "create", "-f", "-", stdin=json.dumps(manifest))
    words = (*kubectl, "logs", "--timestamps", "--tail=1", "-l", f"batch.kubernetes.io/job-name={name}", "--prefix")

    def stamps() -> list[float]:
        lines = run(*words, "--max-log-requests=100").out.splitlines()
        found = [line.split()[1] for line in lines if line.endswith(" started")]
        return [datetime.fromisoformat(stamp).timestamp() for stamp in found] if len(found) == nodes else []

    try:
        return float(max(wait(stamps))) - begin
    finally:
        output(*kubectl, "delete", "job", name, "--cascade=foreground", "--wait")


def grow(cluster: MeasuredCluster, most: int) -> float:
    """Return the seconds from the change of the size until Flux has the last node; then shrink again."""
    begin = cluster.resize(most)
    wait(lambda: cluster.up() == most)
    seconds = max(cluster.online(begin).values()) - begin
    cluster.resize(1)
    wait(lambda: cluster.up() == 1 and cluster.pods() == 1)
    return seconds


def scale(options: argparse.Namespace, kubectl: list[str]) -> None:
    """Time the growth by some nodes, compared with bare pods."""
    most = options.nodes + 1
    clusters: list[MeasuredCluster] = []
    times: dict[str, list[float]] = {"echo": [], "bare": [], "flux": []}
    try:
        clusters.append(BareCluster(most, kubectl, options.namespace))
        clusters.append(MeasuredCluster({"size": 1, "maxSize": most}, kubectl, options.namespace))
        wait(lambda: all(cluster.up() == 1 for cluster in clusters))
        for count in range(options.runs):
            job = json.loads(output(*kubectl, "get", "job", NAME, "-o", "json"))
            times["echo"].append(echo(job, options.nodes, kubectl))
            times["bare"].append(grow(clusters[0], most))
            times["flux"].append(grow(clusters[1], most))
            print(f"{count + 1:2}", *(f"{way} {all_[-1]:.2f} s" for way, all_ in times.items()), sep="  ", flush=True)
    finally:
        for cluster in clusters:
            cluster.remove()
    base = statistics.median(times["bare"])
    for way, all_ in times.items():
        print(f"{way} median {statistics.median(all_):5.2f} s  {statistics.median(all_) / base:4.2f} x bare")


def need(options: argparse.Namespace, kubectl: list[str]) -> None:
    """Time how a cluster grows for a job, compared with bare pods."""
    most = options.nodes + 1
    MeasuredCluster.scheduler = options.scheduler
    clusters: list[MeasuredCluster] = []
    times: dict[str, list[float]] = {"echo": [], "bare": [], "resized": [], "run": [], "sum": []}
    # the cluster shrinks between two runs
    values = {"size": 1, "maxSize": most, "autoscaling": {"enabled": True, "idleSeconds": 1}}
    try:
        clusters.append(BareCluster(most, kubectl, options.namespace))
        clusters.append(MeasuredCluster(values, kubectl, options.namespace))
        wait(lambda: all(cluster.up() == 1 for cluster in clusters))
        for count in range(options.runs):
            job = json.loads(output(*kubectl, "get", "job", NAME, "-o", "json"))
            times["echo"].append(echo(job, options.nodes, kubectl))
            times["bare"].append(grow(clusters[0], most))
            submitted, printed = clusters[1].run(most)
            resized = clusters[1].resized()
            for key, seconds in (("resized", resized - submitted), ("run", printed - resized)):
                times[key].append(seconds)
            times["sum"].append(printed - submitted)
            wait(lambda: clusters[1].up() == 1 and clusters[1].pods() == 1)
            print(f"{count + 1:2}", *(f"{way} {all_[-1]:.2f} s" for way, all_ in times.items()), sep="  ", flush=True)
    finally:
        for cluster in clusters:
            cluster.remove()
    bases = {way: statistics.median(times[way]) for way in ("echo", "bare")}
    for way, all_ in times.items():
        median = statistics.median(all_)
        ratios = (f"{median / base:4.2f} x {other}" for other, base in bases.items())
        print(f"{way:7} median {median:5.2f} s  max {max(all_):5.2f} s", *ratios, sep="  ")


def picture(options: argparse.Namespace, kubectl: list[str]) -> None:
    """Draw how size and nodes follow a queue."""
    scaling = {"enabled": True, "idleSeconds": 15}
    values = {"size": 1, "maxSize": 8, "autoscaling": scaling, "agent": {"periodSeconds": 5}}
    cluster = MeasuredCluster(values, kubectl, options.namespace)
    try:
        begin = time.time()
        cluster.flux("submit", f"--cc=1-{options.jobs}", "-N1", "-n1", "--exclusive", "sleep", str(options.seconds))
        wait(lambda: not cluster.flux("jobs", "-n", "-o", "{id}"))
        wait(lambda: cluster.size() == 1)
        wait(lambda: cluster.up() == 1)
        lines = cluster.flux("jobs", "-a", "-n", "--count=0", "-o", "{t_submit} {t_run} {t_inactive}").splitlines()
        jobs = [[float(stamp) - begin for stamp in line.split()] for line in lines]
        nodes = [
            (at - begin, len(ranks) * (1 if name == "online" else -1))
            for at, name, ranks in cluster.changes()
            if at > begin
        ]
        events = json.loads(output(*kubectl, "get", "events", "--field-selector=reason=Scaled", "-o", "json"))["items"]
        sizes = sorted((e["firstTimestamp"], int(e["message"].split(":")[0].split()[-1])) for e in events)
    finally:
        cluster.remove()
    changed = [(datetime.fromisoformat(at).timestamp() - begin, size) for at, size in sizes]
    wanted = [(at, size) for at, size in changed if at > 0]  # events of an earlier run may be there still
    series = {
        "jobs that wait": summed(0, [(job[0], 1) for job in jobs] + [(job[1], -1) for job in jobs]),
        "jobs that run": summed(0, [(job[1], 1) for job in jobs] + [(job[2], -1) for job in jobs]),
        "size of the Job": [(0.0, 1), *wanted],
        "nodes in Flux": summed(1, nodes),
    }
    Path(options.file).write_text(svg(series), encoding="utf-8")
    for name, points in series.items():
        print(name, " ".join(f"{at:.1f}:{value}" for at, value in points))


def main() -> None:
    """Measure or draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--context")
    parser.add_argument("--namespace", default="default")
    ways = parser.add_subparsers(required=True)
    one = ways.add_parser("scale")
    one.add_argument("--runs", type=int, default=10)
    one.add_argument("--nodes", type=int, default=4)
    one.set_defaults(way=scale)
    more = ways.add_parser("need")
    more.add_argument("--runs", type=int, default=10)
    more.add_argument("--nodes", type=int, default=4)
    more.add_argument("--scheduler", choices=SCHEDULERS, default=MeasuredCluster.scheduler)
    more.set_defaults(way=need)
    two = ways.add_parser("picture")
    two.add_argument("file")
    two.add_argument("--jobs", type=int, default=40)
    two.add_argument("--seconds", type=int, default=8)
    two.set_defaults(way=picture)
    options = parser.parse_args()
    context = ["--context", options.context] if options.context else []
    options.way(options, ["kubectl", "-n", options.namespace, *context])


if __name__ == "__main__":
    run_program(main)
