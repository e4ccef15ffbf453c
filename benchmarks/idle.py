"""CPU, memory and processes of an idle MiniCluster: of a lead, a worker, and the autoscaler's container.

    python -m benchmarks.idle FILE.json [--view IMAGE] [--seconds 60] [--namespace default]

CPU is that of the container's cgroup, so probes and processes that have ended count too. Memory is that of the
processes, with their part of shared memory (PSS). Needs kubectl, helm and minicluster in PATH.
"""

import argparse
import time
from pathlib import Path

from benchmarks.clusters import NAME, MeasuredCluster, wait
from benchmarks.results import Row, save
from tools.clients import output, run_program

NODES = 4
#: Prints nanoseconds of CPU, with either version of cgroups.
CPU = """
if [ -e /sys/fs/cgroup/cpu.stat ]; then
  while read -r key value; do [ "$key" != usage_usec ] || echo "${value}000"; done </sys/fs/cgroup/cpu.stat
else cat /sys/fs/cgroup/cpuacct/cpuacct.usage; fi
"""
#: Prints the KiB of each process, except those of this command.
MEMORY = """
for file in /proc/[0-9]*/smaps_rollup; do
  read -r pid name state parent rest 2>/dev/null <"${file%/*}/stat" || continue
  [ "$pid" != $$ ] && [ "$parent" != $$ ] || continue
  while read -r key value unit; do [ "$key" != Pss: ] || echo "$value"; done <"$file"
done 2>/dev/null
"""


class Container:
    """A container of a pod."""

    def __init__(self, cluster: MeasuredCluster, index: int, name: str) -> None:
        selector = f"batch.kubernetes.io/job-name={cluster.name},batch.kubernetes.io/job-completion-index={index}"
        pod = output(*cluster.kubectl, "get", "pods", "-l", selector, "-o", "name").strip()
        self.words = (*cluster.kubectl, "exec", pod, "-c", name, "--", "sh", "-c")

    def cpu(self) -> float:
        """Return the CPU seconds that it has used."""
        return int(output(*self.words, CPU)) / 1e9

    def processes(self) -> list[float]:
        """Return the MiB of each process."""
        return [int(line) / 1024 for line in output(*self.words, MEMORY).splitlines()]


def measure(containers: dict[str, Container], seconds: float) -> list[Row]:
    """Return what the containers use in some seconds."""
    begin = {what: (time.monotonic(), container.cpu()) for what, container in containers.items()}
    time.sleep(seconds)
    rows = []
    for what, container in containers.items():
        at, before = begin[what]
        used = (container.cpu() - before) / (time.monotonic() - at)
        processes = container.processes()
        rows.append({"what": what, "cpu": used, "mib": sum(processes), "processes": len(processes)})
    return rows


def main() -> None:
    """Measure a cluster with the autoscaler."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--view")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--context")
    parser.add_argument("--where", default="")
    options = parser.parse_args()
    kubectl = ["kubectl", "-n", options.namespace, *(["--context", options.context] if options.context else [])]
    scaling = {"enabled": True, "min": NODES, "max": NODES}
    flux = {"container": {"image": options.view}} if options.view else {}
    cluster = MeasuredCluster({"size": NODES, "autoscaling": scaling, "flux": flux}, kubectl, options.namespace)
    try:
        wait(lambda: cluster.up() == NODES)
        time.sleep(options.seconds)  # until the work of the start has ended
        agent = "minicluster-agent"
        containers = {
            "lead": Container(cluster, 0, NAME),
            "lead, autoscaler": Container(cluster, 0, agent),
            "worker": Container(cluster, 1, NAME),
            "worker, autoscaler": Container(cluster, 1, agent),
        }
        save(options.file, options.where, measure(containers, options.seconds))
    finally:
        cluster.remove()


if __name__ == "__main__":
    run_program(main)
