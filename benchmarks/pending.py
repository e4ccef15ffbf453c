"""What a job that waits costs: in Flux, as a Kubernetes Job, in a queue of Kueue, and as an index of an Indexed Job.

    python -m benchmarks.pending FILE.json [--jobs 1000] [--seconds 60]

No job can start, because no node has room for it. A row has for each job the CPU seconds until all have been taken and
the bytes that are stored; and for all that wait the part of a core that they use in so many seconds, beyond what the
same programs used before. Flux is a broker with its state on disk. The others have API server, etcd, controllers and
scheduler of tools/embedded.py, and Kueue's controller. Needs the programs that `make tools` builds, and flux in PATH.
"""

import argparse
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

from benchmarks.brokers import Broker
from benchmarks.results import Row, save
from benchmarks.small_jobs import NAMESPACE, WAYS, create, create_namespace, remove
from tools.clients import BIN, output, run_program, until
from tools.embedded import EmbeddedCluster
from tools.kueue_beside import kueue

ALL_SECONDS = 900.0
#: Until the controllers have nothing more to do for new jobs
SETTLE_SECONDS = 15.0
#: More than a simulated Kubernetes node has, and less than the quota: Kueue admits one job, and the others wait
CONTAINER = {"image": "none", "resources": {"requests": {"cpu": "400"}}}
STORED = re.compile(r"^apiserver_storage_size_bytes\{.*\} (\S+)$", re.MULTILINE)


def measured(
    pids: Iterable[int], stored: Callable[[], float], submit: Callable[[], None], jobs: int, seconds: float
) -> Row:
    """Submit jobs to programs and let them wait; return what they cost."""
    programs = [Broker(pid) for pid in pids]

    def used() -> float:
        return sum(program.cpu for program in programs)

    def part() -> float:
        begin = used()
        time.sleep(seconds)
        return (used() - begin) / seconds

    idle, size, begin = part(), stored(), used()
    submit()
    taken = used() - begin
    time.sleep(SETTLE_SECONDS)
    waiting = part()
    return {
        "jobs": jobs,
        "ms_per_job": taken / jobs * 1000,
        "bytes_per_job": (stored() - size) / jobs,
        "waiting_part": waiting - idle,
    }


def by_flux(jobs: int, seconds: float) -> Row:
    """Return what jobs cost that wait in a broker whose node is taken."""
    with tempfile.TemporaryDirectory() as name:
        folder, uri = Path(name), f"local://{name}/socket"
        (state := folder / "state").mkdir()
        words = ["flux", "start", f"-Sstatedir={state}", f"-Slocal-uri={uri}", "sleep", "inf"]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL)

        def flux(*args: str) -> str:
            return output("env", f"FLUX_URI={uri}", "flux", *args, seconds=ALL_SECONDS)

        def stored() -> float:
            flux("content", "flush")
            return sum(file.stat().st_size for file in state.iterdir())

        def submit() -> None:
            flux("submit", "--quiet", f"--cc=1-{jobs}", "-n1", "true")
            until(lambda: flux("jobs", "-n", "-f", "sched", "--count=0", "-o", "{id}").count("\n") == jobs, ALL_SECONDS)

        try:
            until((folder / "socket").exists)
            until(lambda: " run " in flux("uptime"))
            flux("submit", "--quiet", "-N1", "--exclusive", "sleep", "inf")
            return measured([process.pid], stored, submit, jobs, seconds)
        finally:
            process.kill()
            process.wait()


def by_kubernetes(way: str, jobs: int, seconds: float) -> Row:
    """Return what Jobs, or the pods of one, cost that wait for nodes or for quota."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        cluster = stack.enter_context(EmbeddedCluster(BIN, Path(folder, "k8s"), nodes=8))
        kind = "pods"
        pids = [pid for name, pid in cluster.pids().items() if name != "kwok"]
        if way == "kueue":
            kind = "workloads.kueue.x-k8s.io"
            pids.append(stack.enter_context(kueue(cluster, cluster.work_dir)))
        create_namespace(cluster, has_queue=way == "kueue")

        def submit() -> None:
            create(cluster, NAMESPACE, way, jobs, CONTAINER)
            words = ("get", kind, "-n", NAMESPACE, "-o", "name")
            until(lambda: cluster.kubectl(*words).count("\n") == jobs, ALL_SECONDS, pause=1)

        def stored() -> float:
            return sum(map(float, STORED.findall(cluster.kubectl("get", "--raw=/metrics"))))

        try:
            return measured(pids, stored, submit, jobs, seconds)
        finally:
            remove(cluster, NAMESPACE)


def main() -> None:
    """Measure each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--where", default="")
    options = parser.parse_args()
    rows: list[Row] = []
    for way in WAYS:
        size = (options.jobs, options.seconds)
        rows.append({"way": WAYS[way], **(by_flux(*size) if way == "flux" else by_kubernetes(way, *size))})
        print(rows[-1], flush=True)
        save(options.file, options.where, rows)


if __name__ == "__main__":
    run_program(main)
