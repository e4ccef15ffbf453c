"""Growing and shrinking: how fast, and a picture of a run.

    python benchmarks/elasticity.py scale [--runs 10] [--nodes 4]
    python benchmarks/elasticity.py picture FILE.svg [--jobs 40] [--seconds 8]

`scale` times in turns new nodes of a MiniCluster, from the change of its Job's size until Flux has them (flux), as
many bare pods of the same images that start Flux by the shortest script that does (bare), and as many that only
print a line (echo). Times are Flux's own and the container runtime's.
`picture` lets the autoscaler follow a queue of one-node jobs from 1 node to 8 and back, and draws what Flux and
Kubernetes recorded. The cluster's clock must be this machine's. Needs kubectl, helm and minicluster in PATH.
"""

import argparse
import json
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

CHART = Path(__file__).parent.parent / "charts" / "minicluster"
NAME = "bench-elastic"
FLUX = "/mnt/flux/bin/flux"
PATIENCE = 300.0
Points = list[tuple[float, int]]


def run(*words: str, stdin: str = "") -> str:
    """Return what a command prints."""
    return subprocess.run(words, input=stdin, capture_output=True, text=True, check=True).stdout


def until(found: Callable[[], Any]) -> Any:
    """Return the first true value."""
    end = time.monotonic() + PATIENCE
    while not (value := found()):
        if time.monotonic() > end:
            raise TimeoutError(f"not within {PATIENCE:g} s")
        time.sleep(0.2)
    return value


class Cluster:
    """The MiniCluster that is measured."""

    def __init__(self, values: dict[str, Any], kubectl: list[str], namespace: str, name: str = NAME) -> None:
        """Install it and wait for its lead."""
        self.kubectl, self.namespace, self.name = kubectl, namespace, name
        text = json.dumps({"logging": {"quiet": True}, "containers": [{"image": "ubuntu:noble", "cores": 1}], **values})
        words = ("--namespace", namespace, "--post-renderer", "minicluster", "-f", "-")
        run("helm", "install", name, str(CHART), *words, stdin=text)
        self.lead = until(self._lead)

    words: tuple[str, ...] = (FLUX,)

    def _lead(self) -> str:
        selector = f"batch.kubernetes.io/job-name={self.name},batch.kubernetes.io/job-completion-index=0"
        pods = json.loads(run(*self.kubectl, "get", "pods", "-l", selector, "-o", "json"))["items"]
        ready = [p for p in pods if p["status"].get("containerStatuses", [{}])[0].get("started")]
        return str(ready[0]["metadata"]["name"]) if ready else ""

    def flux(self, *words: str) -> str:
        """Return what flux prints on the lead."""
        return run(*self.kubectl, "exec", self.lead, "-c", self.name, "--", *self.words, *words)

    def resize(self, size: int) -> float:
        """Change the size; return when."""
        begin = time.time()
        change = json.dumps({"spec": {"completions": size, "parallelism": size}})
        run(*self.kubectl, "patch", "job", self.name, "--type=merge", "-p", change)
        return begin

    def size(self) -> int:
        """Return the size of the Job."""
        return int(json.loads(run(*self.kubectl, "get", "job", self.name, "-o", "json"))["spec"]["completions"])

    def changes(self) -> list[tuple[float, str, set[int]]]:
        """Return when which ranks went online or offline, as Flux recorded it."""
        lines = self.flux("resource", "eventlog", "-f", "json").splitlines()
        events = [json.loads(line) for line in lines]
        return [
            (event["timestamp"], event["name"], ids(event["context"]["idset"]))
            for event in events
            if event["name"] in ("online", "offline")
        ]

    def online(self, since: float) -> dict[int, float]:
        """Return when each rank came online since a time."""
        return {r: at for at, name, ranks in self.changes() for r in ranks if name == "online" and at > since}

    def up(self) -> int:
        """Return how many nodes are up."""
        return int(self.flux("resource", "list", "-n", "-s", "up", "-o", "{nnodes}") or 0)

    def pods(self) -> int:
        """Return how many pods there are."""
        return run(*self.kubectl, "get", "pods", "-l", f"batch.kubernetes.io/job-name={self.name}", "-o", "name").count(
            "\n"
        )

    def remove(self) -> None:
        """Uninstall it and wait until its pods are gone."""
        run("helm", "uninstall", self.name, "--namespace", self.namespace)
        until(lambda: not self.pods())


#: The least that starts a broker of the chart's configuration
BROKER = f"""
set -e
flux=/opt/views/view/bin/flux state=/mnt/flux/config
mkdir -p $state/curve $state/etc/flux/system
(umask 0377 && cat /mnt/flux/curve/curve.cert >$state/curve/curve.cert)
$flux R encode --hosts={NAME}-bare-[0-LAST] --local >$state/etc/flux/system/R
[ $JOB_COMPLETION_INDEX != 0 ] || set -- sleep inf
exec $flux start -c /mnt/flux/minicluster/broker.toml -Shostname={NAME}-bare-$JOB_COMPLETION_INDEX \\
  -Slocal-uri=local:///mnt/flux/local -Sbroker.quorum=1 -Slog-stderr-level=3 "$@"
"""


class BareCluster(Cluster):
    """Pods that start Flux by the shortest script, with the configuration of a MiniCluster that made room for them."""

    words = ("env", "FLUX_URI=local:///mnt/flux/local", "/opt/views/view/bin/flux")

    def __init__(self, most: int, kubectl: list[str], namespace: str) -> None:
        """Install a MiniCluster and put another Job in the place of its own."""
        super().__init__({"size": 1, "maxSize": most}, kubectl, namespace, f"{NAME}-bare")
        job = json.loads(run(*kubectl, "get", "job", self.name, "-o", "json"))
        run(*kubectl, "delete", "job", self.name, "--cascade=foreground", "--wait")
        template = job["spec"]["template"]
        container = template["spec"]["containers"][0]
        container.pop("startupProbe")
        container["command"] = ["sh", "-c", BROKER.replace("LAST", str(most - 1))]
        for label in ("controller-uid", "batch.kubernetes.io/controller-uid"):
            template["metadata"]["labels"].pop(label, None)
        spec = {"completionMode": "Indexed", "completions": 1, "parallelism": 1, "template": template}
        manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": self.name}, "spec": spec}
        run(*kubectl, "create", "-f", "-", stdin=json.dumps(manifest))
        self.lead = until(self._lead)

    def remove(self) -> None:
        """Remove the Job, which is not Helm's."""
        run(*self.kubectl, "delete", "job", self.name, "--cascade=foreground", "--wait")
        super().remove()


def ids(text: str) -> set[int]:
    """Return the numbers of an idset."""
    parts = (part.partition("-") for part in text.strip("[]").split(","))
    return {n for first, _, last in parts for n in range(int(first), int(last or first) + 1)}


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
    run(*kubectl, "create", "-f", "-", stdin=json.dumps(manifest))
    words = (*kubectl, "logs", "--timestamps", "--tail=1", "-l", f"batch.kubernetes.io/job-name={name}", "--prefix")

    def stamps() -> list[float]:
        done = subprocess.run([*words, "--max-log-requests=100"], capture_output=True, text=True, check=False).stdout
        found = [line.split()[1] for line in done.splitlines() if line.endswith(" started")]
        return [datetime.fromisoformat(stamp).timestamp() for stamp in found] if len(found) == nodes else []

    try:
        return float(max(until(stamps))) - begin
    finally:
        run(*kubectl, "delete", "job", name, "--cascade=foreground", "--wait")


def grow(cluster: Cluster, most: int) -> float:
    """Return the seconds from the change of the size until Flux has the last node; shrink again."""
    begin = cluster.resize(most)
    until(lambda: cluster.up() == most)
    seconds = max(cluster.online(begin).values()) - begin
    cluster.resize(1)
    until(lambda: cluster.up() == 1 and cluster.pods() == 1)
    return seconds


def scale(options: argparse.Namespace, kubectl: list[str]) -> None:
    """Time growing by some nodes beside bare pods."""
    most = options.nodes + 1
    clusters: list[Cluster] = []
    times: dict[str, list[float]] = {"echo": [], "bare": [], "flux": []}
    try:
        clusters.append(BareCluster(most, kubectl, options.namespace))
        clusters.append(Cluster({"size": 1, "maxSize": most}, kubectl, options.namespace))
        until(lambda: all(cluster.up() == 1 for cluster in clusters))
        for count in range(options.runs):
            job = json.loads(run(*kubectl, "get", "job", NAME, "-o", "json"))
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


def picture(options: argparse.Namespace, kubectl: list[str]) -> None:
    """Draw how size and nodes follow a queue."""
    scaling = {"enabled": True, "backlogSeconds": 5, "idleSeconds": 15}
    values = {"size": 1, "maxSize": 8, "autoscaling": scaling, "agent": {"periodSeconds": 5}}
    cluster = Cluster(values, kubectl, options.namespace)
    try:
        begin = time.time()
        cluster.flux("submit", f"--cc=1-{options.jobs}", "-N1", "-n1", "--exclusive", "sleep", str(options.seconds))
        until(lambda: not cluster.flux("jobs", "-n", "-o", "{id}"))
        until(lambda: cluster.size() == 1)
        until(lambda: cluster.up() == 1)
        lines = cluster.flux("jobs", "-a", "-n", "--count=0", "-o", "{t_submit} {t_run} {t_inactive}").splitlines()
        jobs = [[float(stamp) - begin for stamp in line.split()] for line in lines]
        nodes = [
            (at - begin, len(ranks) * (1 if name == "online" else -1))
            for at, name, ranks in cluster.changes()
            if at > begin
        ]
        events = json.loads(run(*kubectl, "get", "events", "--field-selector=reason=Scaled", "-o", "json"))["items"]
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


def summed(start: int, steps: Iterable[tuple[float, int]]) -> Points:
    """Return values over time from their changes."""
    points = [(0.0, start)]
    for at, step in sorted(steps):
        points.append((max(0.0, at), points[-1][1] + step))
    return points


def svg(series: dict[str, Points]) -> str:
    """Return a step chart; the first series on a scale of its own, for a queue is longer than a cluster is large."""
    width, height, left, top = 720, 300, 50, 60
    colours = ["#999999", "#e08214", "#2166ac", "#1b7837"]
    end = max(at for points in series.values() for at, _ in points) * 1.02
    names = list(series)
    most = {name: max(v for n in ([name] if name == names[0] else names[1:]) for _, v in series[n]) for name in names}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + 110} {height + 110}" font-family="sans-serif" '
        'font-size="13">',
        f'<rect width="{width + 110}" height="{height + 110}" fill="white"/>',
        f'<path d="M{left} {top}V{top + height}H{left + width}V{top}" fill="none" stroke="black"/>',
    ]
    for second in range(0, int(end) + 1, 10):
        x = left + width * second / end
        parts.append(f'<text x="{x:.0f}" y="{top + height + 18}" text-anchor="middle">{second} s</text>')
    for name, x, anchor in ((names[0], left + width + 8, "start"), (names[-1], left - 8, "end")):
        for value in range(0, most[name] + 1, max(1, most[name] // 8)):
            y = top + height * (1 - value / most[name])
            parts.append(f'<text x="{x}" y="{y + 4:.0f}" text-anchor="{anchor}">{value}</text>')
    for number, (name, points) in enumerate(series.items()):
        path = ""
        for at, value in [*points, (end / 1.02, points[-1][1])]:
            x, y = left + width * at / end, top + height * (1 - value / most[name])
            path += f"M{x:.1f} {y:.1f}" if not path else f"H{x:.1f}V{y:.1f}"
        colour = colours[number]
        label = f"{name} (right)" if number == 0 else name
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts.append(f'<text x="{left + 10 + number * 180}" y="30" fill="{colour}">{label}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


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
    two = ways.add_parser("picture")
    two.add_argument("file")
    two.add_argument("--jobs", type=int, default=40)
    two.add_argument("--seconds", type=int, default=8)
    two.set_defaults(way=picture)
    options = parser.parse_args()
    context = ["--context", options.context] if options.context else []
    options.way(options, ["kubectl", "-n", options.namespace, *context])


if __name__ == "__main__":
    main()
