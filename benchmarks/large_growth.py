"""How the autoscaler brings a MiniCluster from one node to many for a job, and back to one.

    python -m benchmarks.large_growth FILE.json [--nodes 100 1000] [--qps 20]

The agent and the brokers are real; so are API server, controllers and scheduler of tools/embedded.py. The pods are
simulated: when one runs, its broker starts on this machine, a few at a time, and when it is deleted, its broker is
killed. A row has the seconds from the submission of a job over all nodes until the Job's size is changed, until the
last pod runs, and until the job starts, which needs all brokers; and those from its end until the size is 1 again and
until the last pod is gone. `decided_seconds` has the window in which a job waits for nodes before the cluster
grows, and `shrunk_seconds` that in which the nodes are idle (`WINDOWS`). CPU is that of the agent and of the lead's
broker from the submission until the job has started. Needs the programs that `make tools` builds, minicluster and
flux in PATH; for 1,000 nodes also 8 GB of memory, and /proc/sys/kernel/pid_max above 32,768.
"""

import argparse
import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from minicluster.kube.names import INDEX

from benchmarks.brokers import NAME, Broker, bootstrapped
from benchmarks.results import Row, save
from benchmarks.simulated_nodes import room_for
from tools.clients import ROOT, Helm, output, run_program, until
from tools.embedded import EmbeddedCluster
from tools.releases import JOB_NAME, Release

NAMESPACE = "growth"
ALL_SECONDS = 3600.0
#: Brokers that start or end at one time: more would not be faster on this machine
AT_ONCE_BROKERS = 8
WINDOWS = {"backlogSeconds": 1, "idleSeconds": 10}
INDEX_PATH = ".metadata.labels." + INDEX.replace(".", "\\.")
#: What ``--watch`` prints for a pod; a deleted one has a time in the last column
COLUMNS = f"index:{INDEX_PATH},phase:.status.phase,deleted:.metadata.deletionTimestamp"
#: Runs agent.py with the address and the token of the cluster
AGENT = """
import functools, pathlib, sys
sys.path[:0] = sys.argv[3:]
import agent, kube
address, token = sys.argv[1], pathlib.Path(sys.argv[2])
agent.server = lambda: address
agent.Kube = functools.partial(kube.Kube, token=token)
sys.argv[1:] = [str(token / "agent.json")]
agent.main()
"""
POD_PROGRAMS = ("agent", "queue")


class Brokers:
    """The brokers of this machine, in a folder; all but the first follow the pods."""

    def __init__(self, words: list[str], folder: Path) -> None:
        self.words, self.folder = words, folder
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        # the last of the scripts that a broker runs before it joins
        script = folder / "rc/rc1.d/joined"
        script.parent.mkdir(parents=True)
        script.write_text(f"#!/bin/sh\ntouch {folder}/joined-$(flux getattr rank)\n")
        script.chmod(0o755)
        # bash reads the files of the user before each of these scripts, because their stdin is a socket
        self.env = {**os.environ, "FLUX_RC_EXTRA": str(folder / "rc"), "HOME": str(folder)}
        self.start(0)
        self.uri = f"local://{folder}/0/local-0"

    def start(self, index: int) -> None:
        """Start one, and wait until it is about to join."""
        rundir = self.folder / str(index)
        rundir.mkdir(exist_ok=True)
        options = [f"-Shostname={NAME}-{index}", f"-Srundir={rundir}", "-Sbroker.quorum=1", "-Sbroker.rc2_none"]
        null = subprocess.DEVNULL
        self.running[index] = subprocess.Popen([*self.words, *options], stdin=null, stdout=null, env=self.env)
        until((self.folder / f"joined-{index}").exists, ALL_SECONDS, f"broker {index}")

    def end(self, index: int) -> None:
        """End one at once: an orderly end costs more CPU time than a start, on the machine that all share."""
        process = self.running.pop(index)
        process.kill()
        process.wait(ALL_SECONDS)

    def kill(self) -> None:
        """End all at once."""
        for process in self.running.values():
            process.kill()
        for process in self.running.values():
            process.wait(ALL_SECONDS)


class Pods:
    """The simulated pods of a release, whose brokers start and end with them."""

    def __init__(self, release: Release, brokers: Brokers) -> None:
        self.brokers, self.live = brokers, {0}
        words = ["kubectl", "get", "pods", "-n", release.namespace, "-l", f"{JOB_NAME}={release.name}"]
        words += ["--watch", "--no-headers", "-o", f"custom-columns={COLUMNS}"]
        self.watch = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=release.cluster.env)
        self.pool = ThreadPoolExecutor(AT_ONCE_BROKERS)
        self.thread = threading.Thread(target=self._follow)
        self.thread.start()

    def _follow(self) -> None:
        for line in self.watch.stdout or ():
            index, phase, deleted = line.split()
            rank = int(index)
            if deleted != "<none>" and rank in self.live:
                self.live.remove(rank)
                self.pool.submit(self.brokers.end, rank)
            elif deleted == "<none>" and phase == "Running" and rank not in self.live:
                self.live.add(rank)
                self.pool.submit(self.brokers.start, rank)

    def stop(self) -> None:
        """Follow them no longer."""
        self.watch.terminate()
        self.thread.join()
        self.pool.shutdown(cancel_futures=True)


@contextmanager
def agent(release: Release, kubeconfig: Path, brokers: Brokers, folder: Path) -> Iterator[Broker]:
    """Run the agent of a release beside the lead's broker."""
    config = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]
    (folder / "token").write_text(release.kubectl("create", "token", f"{release.name}-agent", "--duration=4h"))
    (folder / "ca.crt").write_bytes(Path(config["certificate-authority"]).read_bytes())
    (folder / "agent.json").write_text(release.get("configmap", f"{release.name}-config")["data"]["agent.json"])
    (folder / "config/run").mkdir(parents=True)
    programs = [str(ROOT / "plugin/minicluster/pod" / name) for name in POD_PROGRAMS]
    words = ["flux", "python", "-c", AGENT, config["server"], str(folder), *programs]
    env = {**os.environ, "FLUX_URI": brokers.uri, "MINICLUSTER_HOME": str(folder)}
    process = subprocess.Popen(words, env=env)
    try:
        yield Broker(process.pid)
    finally:
        process.kill()
        process.wait()


def measure(cluster: EmbeddedCluster, helm: Helm, nodes: int, folder: Path) -> Row:
    """Let a MiniCluster grow for a job and shrink again, and return the figures."""
    release = Release(helm, cluster, NAMESPACE, NAME)
    scaling = {"enabled": True, **WINDOWS}
    container = {"image": "none", "resources": {"requests": {"cpu": "100m"}}}
    release.install(size=1, maxSize=nodes, interactive=True, autoscaling=scaling, containers=[container])
    release.running(1)
    brokers = Brokers(bootstrapped(nodes, 4, "sched-simple", folder), folder)
    pods = Pods(release, brokers)
    try:
        with agent(release, cluster.kubeconfig, brokers, folder) as follower:
            return {"nodes": nodes, "qps": cluster.qps, **grown_and_shrunk(release, brokers, pods, follower, nodes)}
    finally:
        pods.stop()
        brokers.kill()


def grown_and_shrunk(release: Release, brokers: Brokers, pods: Pods, follower: Broker, nodes: int) -> Row:
    """Submit a job over all nodes; return when each step was done, and what it cost."""
    lead = Broker(brokers.running[0].pid)

    def flux(*words: str) -> str:
        return output("env", f"FLUX_URI={brokers.uri}", "flux", *words, seconds=ALL_SECONDS).strip()

    def size() -> int:
        return int(release.kubectl("get", "job", release.name, "-o", "jsonpath={.spec.completions}"))

    begin, used = time.monotonic(), [follower.cpu, lead.cpu]
    # simulated: 1,000 shells on few CPUs would take longer than all the rest
    job = flux("submit", f"-N{nodes}", "--exclusive", "--setattr=exec.test.run_duration=1ms", "true")
    until(lambda: size() == nodes, ALL_SECONDS, "the agent", pause=0.2)
    decided = time.monotonic() - begin
    until(lambda: len(pods.live) == nodes, ALL_SECONDS, "the pods", pause=0.2)
    created = time.monotonic() - begin
    flux("job", "wait-event", job, "alloc")
    used = [now - before for now, before in zip([follower.cpu, lead.cpu], used, strict=True)]
    cost = {"agent_cpu_seconds": used[0], "agent_mib": follower.memory, "lead_cpu_seconds": used[1]}
    cost["lead_mib"] = lead.memory
    flux("job", "wait-event", job, "clean")
    submitted, run = map(float, flux("jobs", "-n", "-o", "{t_submit} {t_run}", job).split())
    begin = time.monotonic()
    until(lambda: size() == 1, ALL_SECONDS, "the agent", pause=0.2)
    shrunk = time.monotonic() - begin
    until(lambda: len(release.items("pods")) == 1, ALL_SECONDS, "the pods", pause=1)
    return {
        "decided_seconds": decided,
        "pods_seconds": created,
        "started_seconds": run - submitted,
        "shrunk_seconds": shrunk,
        "gone_seconds": time.monotonic() - begin,
        **cost,
    }


def main() -> None:
    """Measure each number of nodes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--nodes", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--qps", type=int, default=20)
    parser.add_argument("--where", default="")
    options = parser.parse_args()
    rows: list[Row] = []
    for nodes in options.nodes:
        with room_for(max(options.nodes), options.qps) as (cluster, helm):
            cluster.kubectl("create", "namespace", NAMESPACE)
            rows.append(measure(cluster, helm, nodes, helm.home))
            print(rows[-1], flush=True)
            save(options.file, options.where, rows)


if __name__ == "__main__":
    run_program(main)
