"""The cost of Flux's brokers, by their number, the shape of their tree, and the number of hosts that may join.

    python -m benchmarks.brokers tree FILE.json [--numbers 8 32 128 256]
    python -m benchmarks.brokers hosts FILE.json [--numbers 4 1000 5000 10000]

`tree` starts each number of brokers on this machine (`flux start --test-size`), with R from a file, as in pods. A row
has the CPU seconds of all brokers and the wall time until the quorum, which is all of them; the same for a job with one
task on each broker; the memory, in MiB, of rank 0 and of the mean leaf (PSS: shared memory is divided among its
processes); and the sockets of rank 0.
`hosts` starts two brokers, with a table of each number of hosts and with both schedulers. A row has the CPU seconds and
memory of rank 0, and the bytes of R and of resource.eventlog. Needs flux in PATH; wall times mean something only on a
machine with enough CPUs for all brokers.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tomli_w
from minicluster.console.templates import rendered

from benchmarks.results import Row, save
from tools.clients import ClusterError, output, run_program

NAME = "bench"
TICKS = os.sysconf("SC_CLK_TCK")
#: Default numbers of hosts in a table, and of cores of each.
HOSTS = ((4, 4), (1000, 4), (5000, 4), (10000, 4), (1000, 64), (5000, 64))
FANOUTS = (2, 16, 32, 256)
STDERR = "-Slog-stderr-level=3"
SCHEDULERS: dict[str, dict[str, Any]] = {
    "sched-simple": {"modules": {"alternatives": {"sched": "sched-simple", "feasibility": "sched-simple"}}},
    "Fluxion": {
        "sched-fluxion-qmanager": {"queue-policy": "conservative"},
        "sched-fluxion-resource": {"match-policy": "lonode"},
    },
}


class Broker:
    """A broker's process, as /proc shows it."""

    def __init__(self, pid: int) -> None:
        self.folder = Path("/proc", str(pid))

    @property
    def cpu(self) -> float:
        """CPU seconds of the process and of its children that have ended."""
        return sum(map(int, (self.folder / "stat").read_text().rpartition(")")[2].split()[11:15])) / TICKS

    @property
    def memory(self) -> float:
        """MiB of its own memory, and its part of shared memory."""
        lines = (self.folder / "smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024

    @property
    def sockets(self) -> int:
        """Open sockets."""
        links = (str(link.readlink()) for link in (self.folder / "fd").iterdir())
        return sum(link.startswith("socket:") for link in links)


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    return [
        int(word) for task in Path(f"/proc/{pid}/task").iterdir() for word in (task / "children").read_text().split()
    ]


class Instance:
    """Brokers that have been started, rank 0 first."""

    def __init__(self, process: subprocess.Popen[str], pids: list[int], begin: float) -> None:
        self.process, self.brokers, self.begin = process, [Broker(pid) for pid in pids], begin

    def step(self, name: str) -> tuple[float, float]:
        """Run the next step; return the CPU seconds of all brokers and the wall time since the start."""
        assert self.process.stdin and self.process.stdout
        if name != "quorum":
            print("go", file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if line != f"{name}\n":
            raise ClusterError(f"Flux wrote {line!r} in place of {name}")
        return sum(broker.cpu for broker in self.brokers), time.monotonic() - self.begin


def steps(folder: Path) -> str:
    """Return the script of rank 0, which writes into a folder."""
    return rendered(__file__, "broker_steps.sh.j2", folder=str(folder))


def resources(hosts: int, cores: int, folder: Path) -> None:
    """Write R of a number of hosts."""
    text = output("flux", "R", "encode", f"--hosts={NAME}-[0-{hosts - 1}]", f"--cores=0-{cores - 1}")
    (folder / "R").write_text(text)


def configured(folder: Path, **tables: Any) -> Path:
    """Write broker.toml, as the chart has it."""
    file = folder / "broker.toml"
    resource = {"path": str(folder / "R"), "noverify": True}
    file.write_text(tomli_w.dumps({"resource": resource, **tables}))
    return file


def environment(scheduler: str) -> dict[str, str]:
    """Return variables by which Flux finds a scheduler in a prefix of its own, as in pod/view/environment.sh."""
    if scheduler != "Fluxion":
        return {}
    prefix = Path(shutil.which("flux") or "").parent.parent
    return {
        "FLUX_MODULE_PATH_PREPEND": str(prefix / "lib/flux/modules"),
        "FLUX_EXEC_PATH_PREPEND": str(prefix / "libexec/flux/cmd"),
        "FLUX_MODPROBE_PATH_APPEND": str(prefix / "etc/flux/modprobe"),
        "FLUX_RC_EXTRA": str(prefix / "etc/flux"),
    }


@contextmanager
def running(words: list[str], brokers: int, **variables: str) -> Iterator[Instance]:
    """Start a command that becomes a broker, or starts several; the variable SIZE is the nodes of its jobs."""
    begin = time.monotonic()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(words, text=True, env={**os.environ, **variables}, **pipes)  # type: ignore[call-overload]
    try:
        while brokers > 1 and len(children(process.pid)) < brokers and process.poll() is None:
            time.sleep(0.01)
        yield Instance(process, children(process.pid) if brokers > 1 else [process.pid], begin)
        process.communicate("go\n", timeout=600)
    finally:
        process.terminate()
        process.wait(60)


def tree_row(size: int, fanout: int, folder: Path) -> Row:
    """Start a tree of brokers and run a job on it."""
    resources(size, 4, folder)
    words = ["flux", "start", f"--test-size={size}", f"--test-hosts={NAME}-[0-{size - 1}]", STDERR]
    words += [f"--config-path={configured(folder, **SCHEDULERS['sched-simple'])}", f"-Stbon.topo=kary:{fanout}"]
    with running([*words, "sh", "-c", steps(folder)], size, SIZE=str(size)) as instance:
        cpu, seconds = instance.step("quorum")
        lead, leaves = instance.brokers[0], instance.brokers[-max(1, size // 2) :]
        row = {
            "brokers": size,
            "fanout": fanout,
            "quorum_cpu_seconds": cpu,
            "quorum_seconds": seconds,
            "lead_cpu_seconds": lead.cpu,
            "lead_mib": lead.memory,
            "leaf_mib": sum(leaf.memory for leaf in leaves) / len(leaves),
            "lead_sockets": lead.sockets,
        }
        job_cpu, job_seconds = instance.step("job")
        instance.step("end")
    job = {"job_cpu_seconds": job_cpu - cpu, "job_seconds": job_seconds - seconds}
    return row | job | {"eventlog_bytes": (folder / "eventlog").stat().st_size}


def fanouts(size: int) -> list[int]:
    """Return the fanouts that make different trees of ``size`` brokers."""
    flat = min((fanout for fanout in FANOUTS if fanout >= size - 1), default=max(FANOUTS))
    return [fanout for fanout in FANOUTS if fanout <= flat]


def tree(options: argparse.Namespace) -> Iterator[Row]:
    """Measure trees of brokers."""
    for size in options.numbers or (8, 32, 128, 256):
        for fanout in fanouts(size):
            with tempfile.TemporaryDirectory() as folder:
                yield tree_row(size, fanout, Path(folder))


def bootstrapped(hosts: int, cores: int, scheduler: str, folder: Path) -> list[str]:
    """Return the words that start a broker of a table of hosts; its name and its rundir are to be added."""
    resources(hosts, cores, folder)
    output("flux", "keygen", folder / "curve.cert")
    addresses = dict.fromkeys(("default_bind", "default_connect"), f"ipc://{folder}/%h")
    entries = [{"host": f"{NAME}-[0-{hosts - 1}]"}]
    bootstrap = {"curve_cert": str(folder / "curve.cert"), **addresses, "hosts": entries}
    config = configured(folder, bootstrap=bootstrap, **SCHEDULERS[scheduler])
    return ["flux", "start", f"--config-path={config}", STDERR, "-Stbon.topo=kary:256"]


def hosts_row(hosts: int, cores: int, scheduler: str, folder: Path) -> Row:
    """Start two brokers of a table of hosts."""
    words = [*bootstrapped(hosts, cores, scheduler, folder), "-Sbroker.quorum=2"]
    (folder / "1").mkdir()
    found = environment(scheduler)
    words_of_worker = [*words, f"-Shostname={NAME}-1", f"-Srundir={folder}/1"]
    worker = subprocess.Popen(words_of_worker, stdin=subprocess.DEVNULL, env={**os.environ, **found})
    try:
        with running([*words, f"-Shostname={NAME}-0", "sh", "-c", steps(folder)], 1, SIZE="2", **found) as instance:
            cpu, seconds = instance.step("quorum")
            job_cpu, _ = instance.step("job")
            memory = instance.brokers[0].memory
            instance.step("end")
    finally:
        worker.terminate()
        worker.wait(60)
    if ("sched-fluxion-qmanager" in (folder / "modules").read_text()) != (scheduler == "Fluxion"):
        raise ClusterError(f"Flux did not load {scheduler}")
    return {
        "hosts": hosts,
        "cores": cores,
        "scheduler": scheduler,
        "quorum_cpu_seconds": cpu,
        "quorum_seconds": seconds,
        "job_cpu_seconds": job_cpu - cpu,
        "lead_mib": memory,
        "R_bytes": (folder / "R").stat().st_size,
        "eventlog_bytes": (folder / "eventlog").stat().st_size,
    }


def hosts(options: argparse.Namespace) -> Iterator[Row]:
    """Measure tables of hosts."""
    for number, cores in [(number, options.cores) for number in options.numbers or ()] or HOSTS:
        for scheduler in SCHEDULERS:
            with tempfile.TemporaryDirectory() as folder:
                yield hosts_row(number, cores, scheduler, Path(folder))


def main() -> None:
    """Measure, and write the figures after each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("way", choices=("tree", "hosts"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--numbers", type=int, nargs="+")
    parser.add_argument("--cores", type=int, default=4)
    parser.add_argument("--where", default="")
    options = parser.parse_args()
    rows: list[Row] = []
    for row in {"tree": tree, "hosts": hosts}[options.way](options):
        rows.append(row)
        print(row, flush=True)
        save(options.file, options.where, rows)


if __name__ == "__main__":
    run_program(main)
