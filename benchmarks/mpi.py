"""How much slower MPI is over several pods of one Kubernetes node than in one pod.

    python -m benchmarks.mpi --image IMAGE --view VIEW [--rounds 5] [--size 4] [--namespace default]

Each round runs, in turns, LAMMPS' Lennard-Jones melt and a ping-pong
  pods      over SIZE pods of one Kubernetes node, a rank in each, as the chart does by default (flux.affinity auto),
  off       the same with -ocpu-affinity=off,
  on        the same with -ocpu-affinity=on, as Flux does by default,
  mpirun    in one of these pods, with as many ranks, without Flux.
It prints the medians, and their ratios to mpirun, as a table in Markdown. The image has LAMMPS (`lmp`), mpirun of
Open MPI, and `pingpong-openmpi`, which prints `8 B X us` and `8192 B X us`, half a round trip between ranks 0 and 1.
Needs kubectl, helm and minicluster in PATH; the cluster's only work should be this.
"""

import argparse
import json
import re
import statistics
from typing import Any

from minicluster.console.templates import rendered

from tools.clients import CHART, ClusterError, output, run_program, until

NAME = "bench-mpi"
FLUX = "/mnt/flux/bin/flux"
RUN_SECONDS = 300.0
#: The figures with their units, and the pattern of each in the output.
FOUND = {
    "LAMMPS, s": r"^Loop time of (\S+) on {size} procs",
    "ping-pong 8 B, µs": r"^8 B (\S+) us$",
    "ping-pong 8 KiB, µs": r"^8192 B (\S+) us$",
}
COMMANDS = ("lmp -in /tmp/melt -log none", "pingpong-openmpi")


def ways(size: int) -> dict[str, str]:
    """Return the shell words of each way to start a command, by its name."""
    flux = f"{FLUX} run -N{size} -n{size}"
    shared = f"mpirun --allow-run-as-root --oversubscribe --bind-to none -n {size}"
    return {"pods": flux, "off": f"{flux} -ocpu-affinity=off", "on": f"{flux} -ocpu-affinity=on", "mpirun": shared}


def lead(kubectl: list[str], size: int) -> str:
    """Return the name of the lead's pod once all pods are ready. Raises ClusterError."""

    def ready() -> list[dict[str, Any]]:
        pods = json.loads(output(*kubectl, "get", "pods", "-l", f"job-name={NAME}", "-o", "json"))["items"]
        found = [pod for pod in pods if pod["status"].get("containerStatuses", [{}])[0].get("ready")]
        return found if len(found) == size else []

    pods = until(ready, RUN_SECONDS, f"{size} pods that are ready", pause=0.5)
    if len({pod["spec"]["nodeName"] for pod in pods}) > 1:
        raise ClusterError("the pods are on several Kubernetes nodes: leave one by kubectl cordon")
    return min(str(pod["metadata"]["name"]) for pod in pods)


def measure(inside: list[str], words: str, size: int) -> dict[str, float]:
    """Return the figures that the commands print."""
    printed = "".join(output(*inside, "sh", "-c", f"{words} {command}", seconds=RUN_SECONDS) for command in COMMANDS)
    found = {name: re.search(pattern.format(size=size), printed, re.MULTILINE) for name, pattern in FOUND.items()}
    missing = [name for name, match in found.items() if not match]
    if missing:
        raise ClusterError(f"{words}: no {', '.join(missing)} in {printed}")
    return {name: float(match[1]) for name, match in found.items() if match}


def table(times: dict[str, dict[str, list[float]]]) -> str:
    """Return the medians and their ratios to mpirun in Markdown."""
    rows = [["", *times], ["---", *("---:" for _ in times)]]
    for name in FOUND:
        medians = {way: statistics.median(all_[name]) for way, all_ in times.items()}
        rows.append([name, *(f"{value:.2f} ({value / medians['mpirun']:.2f} x)" for value in medians.values())])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def values(options: argparse.Namespace) -> dict[str, Any]:
    """Return the values of the cluster, whose pods have the input of LAMMPS."""
    melt = rendered(__file__, "melt.lammps.j2", cells=options.cells, steps=options.steps)
    init = f"cat >/tmp/melt <<'END'\n{melt}END"
    return {
        "size": options.size,
        "logging": {"quiet": True},
        "containers": [{"image": options.image, "cores": 1, "commands": {"init": init}}],
        "flux": {"container": {"image": options.view}},
        "network": {"disableAffinity": True},
    }


def main() -> None:
    """Measure all ways in turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--image", required=True)
    parser.add_argument("--view", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=4)
    parser.add_argument("--cells", type=int, default=20, help="cells of the melt along an edge, 4 atoms each")
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--namespace", default="default")
    options = parser.parse_args()
    kubectl = ["kubectl", "-n", options.namespace]
    words = ("-n", options.namespace, "--post-renderer", "minicluster", "-f", "-")
    output("helm", "install", NAME, CHART, *words, stdin=json.dumps(values(options)))
    try:
        inside = [*kubectl, "exec", lead(kubectl, options.size), "-c", NAME, "--"]
        times: dict[str, dict[str, list[float]]] = {way: {name: [] for name in FOUND} for way in ways(options.size)}
        for count in range(options.rounds):
            for way, start in ways(options.size).items():
                found = measure(inside, start, options.size)
                for name, value in found.items():
                    times[way][name].append(value)
                print(
                    f"{count + 1:2} {way:6}",
                    *(f"{name} {value:.2f}" for name, value in found.items()),
                    sep="  ",
                    flush=True,
                )
        print(table(times))
    finally:
        output("helm", "uninstall", NAME, "-n", options.namespace)


if __name__ == "__main__":
    run_program(main)
