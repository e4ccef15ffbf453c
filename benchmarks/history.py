"""What a long history of jobs costs: memory, disk, jobs a second, and the seconds of commands and of a lead's return.

    python -m benchmarks.history FILE.json [--jobs 100000] [--kept 0] [--rounds 5] [--real] [--memory 512Mi]

One MiniCluster of 2 nodes, with the autoscaler's agent and its state on a claim, gets jobs with Flux's simulated
execution, a thousand at a time. At 1,000 jobs, 10,000 and each further tenth of ``--jobs`` a row is written. At the end
the cluster gets a thousand jobs in turns with one that has no history, and their CPU time is compared: other programs
of the machine change how many jobs a second there are, and hardly what a job costs. ``--kept`` is the value of
`flux.keptJobs`: a large one shows what Flux does without a limit. `--real` runs processes, and `--memory` limits those
of a node. Needs what the pods' tests need (CONTRIBUTING.md).
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.clusters import MeasuredCluster, wait
from benchmarks.results import Row, save
from tools import tenant, testbed
from tools.clients import output, run_program

CLUSTER_PODS, CHUNK_JOBS = 2, 1000
AGENT = "minicluster-agent"
#: Prints the milliseconds in which $1 jobs were submitted and ended, each of a simulated time $2, if that is not "".
RUN = """
set -e
begin=$(date +%s%N)
flux submit --quiet --cc=1-$1 -n1 ${2:+--setattr=exec.test.run_duration=$2} true
flux queue drain
echo $((($(date +%s%N) - begin) / 1000000))
"""
#: Prints the clock ticks that the broker and the Python programs of the lead's container have used (proc_pid_stat(5)).
TICKS = """
for file in /proc/[0-9]*/stat; do
  read -r line 2>/dev/null <"$file" || continue
  case $line in *'(flux-broker'* | *'('*python*) ;; *) continue ;; esac
  set -- ${line##*) }
  echo $((${12} + ${13}))
done 2>/dev/null
"""
#: Prints the KiB of the broker and of the Python programs of the lead's container, now; of the broker at most, so far;
#: and of a folder.
USED = """
for file in /proc/[0-9]*/smaps_rollup; do
  read -r line 2>/dev/null <"${file%/*}/comm" || continue
  case $line in
  flux-broker*) name=broker; sed -n 's/^VmHWM:/peak/p' "${file%/*}/status" ;;
  *python*) name=python ;;
  *) continue ;;
  esac
  while read -r key value unit; do [ "$key" != Pss: ] || echo "$name $value"; done <"$file"
done 2>/dev/null
echo "disk $(du -sk "$1" | cut -f1)"
"""


def run_jobs(cluster: MeasuredCluster, jobs: int, simulated: str = "1ms") -> tuple[float, float]:
    """Run jobs; return how many a second, and how many milliseconds of CPU time each costs the lead."""
    words = ("/mnt/flux/bin/flux", "env", "sh", "-c", RUN, "sh", str(jobs), simulated)
    before = _cpu_seconds(cluster)
    rate = jobs * 1000 / int(cluster.exec(*words, seconds=3600).split()[-1])
    return rate, (_cpu_seconds(cluster) - before) * 1000 / jobs


def _cpu_seconds(cluster: MeasuredCluster) -> float:
    return sum(map(int, cluster.exec("sh", "-c", TICKS).split())) / os.sysconf("SC_CLK_TCK")


def seconds(work: Callable[[], object]) -> float:
    """Return how long some work takes."""
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def used(cluster: MeasuredCluster) -> dict[str, float]:
    """Return the MiB of the lead's broker, of its other programs, of the agent, and of the files of the state."""
    sums: dict[str, float] = {"broker": 0.0, "peak": 0.0, "python": 0.0, "disk": 0.0}
    for line in cluster.exec("sh", "-c", USED, "sh", "/mnt/flux/state").splitlines():
        name, kib, *_ = line.split()
        sums[name] += int(kib) / 1024
    agent = output(*cluster.kubectl, "exec", cluster.lead, "-c", AGENT, "--", "sh", "-c", USED, "sh", "/dev/null")
    agents = sum(int(line.split()[1]) for line in agent.splitlines() if line.startswith("python")) / 1024
    found = {"broker_mib": sums["broker"], "peak_mib": sums["peak"], "programs_mib": sums["python"]}
    return {**found, "agent_mib": agents, "disk_mib": sums["disk"]}


def row(cluster: MeasuredCluster, done: int, rate: float, cpu: float) -> Row:
    """Return the figures of a cluster that has run some jobs, the last ones at a rate and a cost."""
    ours = ("minicluster", "jobs", cluster.name, "--namespace", cluster.namespace)
    return {
        "jobs": done,
        "a_second": rate,
        "cpu_ms": cpu,
        **used(cluster),
        "flux_jobs_seconds": seconds(lambda: cluster.flux("jobs", "-a", "--count=0", "-n", "-o", "{id}")),
        "jobs_seconds": seconds(lambda: output(*ours)),
        "status_seconds": seconds(lambda: output("minicluster", "status", *ours[2:])),
    }


def back(cluster: MeasuredCluster) -> float:
    """Kill the lead's broker; return the seconds until a job has run."""
    pid = cluster.flux("getattr", "broker.pid").strip()
    begin = time.monotonic()
    cluster.exec("sh", "-c", f"kill -9 {pid}")
    wait(lambda: cluster.flux("run", "--urgency=31", "--quiet", "echo", "back"))
    return time.monotonic() - begin


class LongCluster(MeasuredCluster):
    """A MiniCluster without a limit of memory; without a request other pods would come first."""

    runner: Mapping[str, Any] = {"cores": 2, "resources": {"requests": {"cpu": "400m"}}}
    scheduler = "sched-simple"


@contextmanager
def installed(name: str, values: Mapping[str, Any], kubectl: list[str], namespace: str) -> Iterator[MeasuredCluster]:
    """Install a MiniCluster with its state on a claim, and remove it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        volume = stack.enter_context(testbed.new_volume())
        testbed.bind(testbed.release(namespace, {}, folder), f"{name}-state", volume, folder / "state")
        scaling = {"enabled": True, "min": CLUSTER_PODS, "max": CLUSTER_PODS}
        given = {"size": CLUSTER_PODS, "autoscaling": scaling, "state": {"claimName": f"{name}-state"}, **values}
        cluster = LongCluster(given, kubectl, namespace, name)
        stack.callback(cluster.remove)
        wait(lambda: cluster.up() == CLUSTER_PODS)
        yield cluster


def main() -> None:
    """Measure, and write the figures after each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--kept", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--memory", default="")
    parser.add_argument("--where", default="")
    options = parser.parse_args()
    if options.memory:
        resources = {"requests": {"cpu": "400m"}, "limits": {"memory": options.memory}}
        LongCluster.runner = {**LongCluster.runner, "resources": resources}
    run = partial(run_jobs, simulated="" if options.real else "1ms")
    values = {"flux": {"keptJobs": options.kept}} if options.kept else {}
    marks = {CHUNK_JOBS, 10 * CHUNK_JOBS, *range(options.jobs // 10, options.jobs + 1, options.jobs // 10)}
    rows: list[Row] = []
    with testbed.new_namespace(world=tenant.PLAIN) as namespace, ExitStack() as stack:
        kubectl = ["kubectl", "-n", namespace]
        cluster = stack.enter_context(installed("long", values, kubectl, namespace))
        for done in range(CHUNK_JOBS, options.jobs + 1, CHUNK_JOBS):
            rate, cpu = run(cluster, CHUNK_JOBS)
            print(f"{done} jobs: {rate:.0f} a second, {cpu:.2f} ms of CPU each", flush=True)
            if done in marks:
                rows.append(row(cluster, done, rate, cpu))
                print(rows[-1], flush=True)
                save(options.file, options.where, rows)
        fresh = stack.enter_context(installed("fresh", values, kubectl, namespace))
        run(fresh, CHUNK_JOBS)
        pairs = [(run(fresh, CHUNK_JOBS), run(cluster, CHUNK_JOBS)) for _ in range(options.rounds)]
        for what, at in (("jobs a second, with a history to without", 0), ("CPU time of a job, without to with", 1)):
            ratios = [new[at] / old[at] if at else old[at] / new[at] for new, old in pairs]
            print(f"{what}: {statistics.median(ratios):.2f} of {ratios}", flush=True)
        for what, each in (("with", cluster), ("without", fresh)):
            print(f"the lead came back after {back(each):.1f} s {what} a history", flush=True)


if __name__ == "__main__":
    run_program(main)
