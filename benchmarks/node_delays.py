"""The autoscaler where Kubernetes nodes come late and go late: its own part of the delay.

    python -m benchmarks.node_delays FILE.json [--nodes 8] [--rounds 3] [--come 31.5] [--go 92.6] [--where TEXT]

A pod of the MiniCluster fills a Kubernetes node. A simulated node comes so many seconds after the scheduler has found
no room for a pod, and goes so many seconds after its last pod, as the nodes of a cloud do under its autoscaler. The
agent, the lead's broker and those of the new pods are real, as in benchmarks/large_growth.py. Its own part is what is
left of the seconds from the submission of a job over all nodes to its start, without those in which the nodes came; and
of those from the end of the job until the last node has gone, without those that it takes an empty node to go. It has
the two windows of the settings: that in which a job waits before the cluster grows, and that in which nodes are idle.
Three rounds take about eight minutes. Needs the programs that `make tools` builds, minicluster and flux in PATH.
"""

import argparse
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.brokers import NAME, bootstrapped
from benchmarks.large_growth import NAMESPACE, WINDOWS, Brokers, Pods, agent
from benchmarks.results import Row, medians, save, with_load
from tools.clients import BIN, Helm, output, run_program, until
from tools.embedded import NODE_SIZE, EmbeddedCluster, simulated_node
from tools.releases import Release

STEP_SECONDS = 300.0
LOOK_SECONDS = 0.2
PREFIX = "late-"
#: Fills a node
CONTAINER = {"image": "none", "resources": {"requests": {"cpu": "60"}}}


class Cloud(threading.Thread):
    """What adds and removes simulated nodes, some seconds late."""

    def __init__(self, cluster: EmbeddedCluster, come: float, go: float) -> None:
        """Add and remove none yet."""
        super().__init__()
        self.cluster, self.come, self.go = cluster, come, go
        self.wanted: dict[str, float] = {}  #: when there was no room for each pod
        self.empty: dict[str, float] = {}  #: since when each node has had no pod
        self.made: dict[str, float] = {}  #: when each node was made
        self.gone: list[float] = []
        self.is_over = threading.Event()

    def run(self) -> None:
        """Look again and again."""
        while not self.is_over.wait(LOOK_SECONDS):
            self.look(time.monotonic())

    def look(self, now: float) -> None:
        """Note what there is, and make and remove the nodes whose time has come."""
        pods = self.cluster.get("pods", "-n", NAMESPACE)["items"]
        for pod in pods:
            if _has_no_room(pod):
                self.wanted.setdefault(pod["metadata"]["uid"], now)
        for pod in [uid for uid, since in self.wanted.items() if since + self.come <= now]:
            del self.wanted[pod]
            name = f"{PREFIX}{len(self.made)}"
            self.cluster.create(simulated_node(name, NODE_SIZE, {}, f"10.1.0.{len(self.made) + 1}"))
            self.made[name] = time.monotonic()
        used = {pod["spec"].get("nodeName") for pod in pods}
        for name in set(self.made) - set(self.empty) - used:
            self.empty[name] = now
        for name in used & set(self.empty):
            del self.empty[name]
        for name in [name for name, since in self.empty.items() if max(since, self.made[name]) + self.go <= now]:
            self.cluster.kubectl("delete", "node", name)
            del self.made[name], self.empty[name]
            self.gone.append(time.monotonic())


def _has_no_room(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable" for c in conditions)


def measure(release: Release, brokers: Brokers, cloud: Cloud, nodes: int) -> Row:
    """Let the cluster grow for a job and shrink again; return the seconds of each step."""

    def flux(*words: str) -> str:
        return output("env", f"FLUX_URI={brokers.uri}", "flux", *words, seconds=STEP_SECONDS).strip()

    def size() -> int:
        return int(release.kubectl("get", "job", release.name, "-o", "jsonpath={.spec.completions}"))

    cloud.gone.clear()
    begin = time.monotonic()
    job = flux("submit", f"-N{nodes}", "--exclusive", "--setattr=exec.test.run_duration=1ms", "true")
    until(lambda: size() == nodes, STEP_SECONDS, "the agent", pause=LOOK_SECONDS)
    decided = time.monotonic() - begin
    until(lambda: len(cloud.made) == nodes - 1, STEP_SECONDS, "the nodes", pause=LOOK_SECONDS)
    came = max(cloud.made.values()) - begin
    flux("job", "wait-event", job, "clean")
    submitted, ran = map(float, flux("jobs", "-n", "-o", "{t_submit} {t_run}", job).split())
    begin = time.monotonic()
    until(lambda: size() == 1, STEP_SECONDS, "the agent", pause=LOOK_SECONDS)
    shrunk = time.monotonic() - begin
    until(lambda: not cloud.made, STEP_SECONDS, "the nodes' end", pause=LOOK_SECONDS)
    gone = max(cloud.gone) - begin
    return {
        "decided_seconds": decided,
        "came_seconds": came,
        "started_seconds": ran - submitted,
        "own_seconds": ran - submitted - cloud.come,
        "shrunk_seconds": shrunk,
        "gone_seconds": gone,
        "own_gone_seconds": gone - cloud.go,
    }


def measured(nodes: int, rounds: int, come: float, go: float) -> list[Row]:
    """Return the seconds of each round, in one MiniCluster."""
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedCluster(BIN, Path(folder, "k8s"), nodes=1, qps=20) as cluster,
    ):
        home = Path(folder)
        cluster.kubectl("create", "namespace", NAMESPACE)
        release = Release(Helm("helm", home, {"KUBECONFIG": str(cluster.kubeconfig)}), cluster, NAMESPACE, NAME)
        scaling = {"enabled": True, **WINDOWS}
        release.install(size=1, maxSize=nodes, interactive=True, autoscaling=scaling, containers=[CONTAINER])
        release.running(1)
        brokers = Brokers(bootstrapped(nodes, 4, "sched-simple", home), home)
        pods, cloud = Pods(release, brokers), Cloud(cluster, come, go)
        cloud.start()
        try:
            with agent(release, cluster.kubeconfig, brokers, home):
                found = []
                for _ in range(rounds):
                    found.append(measure(release, brokers, cloud, nodes))
                    print(found[-1], flush=True)
                return found
        finally:
            cloud.is_over.set()
            cloud.join()
            pods.stop()
            brokers.kill()


def main() -> None:
    """Measure some rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--come", type=float, default=31.5)
    parser.add_argument("--go", type=float, default=92.6)
    parser.add_argument("--where", default="")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    found = measured(options.nodes, options.rounds, options.come, options.go)
    rows = [{"nodes": options.nodes, "rounds": options.rounds, **medians(found, "own_seconds")}]
    save(options.file, with_load(options.where, load), rows)


if __name__ == "__main__":
    run_program(main)
