"""How long MPI programs take to find each other, by Flux's PMI, by PMIx and by mpirun over ssh, by their ranks.

    python -m benchmarks.hookup FILE.json --image IMAGE [--ranks 2 4 8 16 32 64] [--pods 16] [--rounds 5] [--where TEXT]

In one MiniCluster, benchmarks/hookup.c runs with as many ranks as pods, up to all pods, then several in each. Whole is
from the launcher's start to its end, on the lead; MPI_Init is that of the rank which took longest. The ways take turns.
The last column is the slope of a straight line through the medians. The image has Open MPI with libpmix, the program,
compiled by it, as `hookup-openmpi`, and a sshd to which root may log in with a key: mpirun gets a list of addresses and
starts its daemons by ssh. Ranks that wait yield. Needs the cluster of MINICLUSTER_TEST_KUBECONFIG. It takes about eight
minutes.
"""

import argparse
import os
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.clusters import FLUX, MeasuredCluster
from benchmarks.results import Row, save, with_load
from tools import testbed
from tools.clients import ClusterError, run_program
from tools.tenant import ROOT_PODS

PROGRAM = "hookup-openmpi"
RUN_SECONDS = 120
#: Lets the lead log in to all pods, and lists their addresses; $1: flux
PREPARE = """
cd /tmp && rm -f key key.pub && ssh-keygen -q -t ed25519 -N '' -f key
mkdir -p ~/.ssh && cp key ~/.ssh/id_ed25519
$1 exec -r all sh -ec 'mkdir -p ~/.ssh /run/sshd
  echo "$0" >~/.ssh/authorized_keys; chmod -R go= ~/.ssh; /usr/sbin/sshd' "$(cat key.pub)"
$1 exec -r all hostname -i | cut -d' ' -f1 >addresses
"""
#: Prints the seconds of a command, and what it prints
TIMED = 'begin=$(date +%s%N); said=$(timeout "$0" "$@"); echo "$(($(date +%s%N) - begin)) $said"'
#: For ranks that share cores
ENV = ("env", "OMPI_MCA_mpi_yield_when_idle=1", "OMPI_MCA_btl=tcp,self", "OMPI_MCA_btl_tcp_if_include=eth0")
WAYS = {"simple": "flux run, PMI", "pmix": "flux run, PMIx", "mpirun": "mpirun over ssh"}


class HookupCluster(MeasuredCluster):
    """A MiniCluster in an image with MPI."""

    def __init__(self, image: str, pods: int, kubectl: list[str], namespace: str) -> None:
        self.runner: Mapping[str, Any] = {"image": image, "cores": 4}
        super().__init__({"size": pods}, kubectl, namespace)
        self.exec("sh", "-ec", PREPARE, "sh", FLUX)

    def launcher(self, way: str, ranks: int, pods: int) -> list[str]:
        """Return the command that starts the ranks."""
        if way != "mpirun":
            return [*ENV, FLUX, "run", f"-N{pods}", f"-n{ranks}", f"-opmi={way}", "-ocpu-affinity=off", PROGRAM]
        mapped = ["--map-by", f"ppr:{ranks // pods}:node", "--bind-to", "none", "--oversubscribe"]
        where = ["--hostfile", "/tmp/addresses", "--mca", "oob_tcp_if_include", "eth0"]  # noqa: S108 - in a pod
        return [*ENV, "mpirun.openmpi", "--allow-run-as-root", *where, *mapped, "-n", str(ranks), PROGRAM]

    def timed(self, way: str, ranks: int, pods: int) -> tuple[float, float]:
        """Return the seconds of a run, and of its longest MPI_Init."""
        words = self.launcher(way, ranks, pods)
        said = self.exec("sh", "-c", TIMED, str(RUN_SECONDS), *words, seconds=RUN_SECONDS + 30).split()
        if len(said) != 2:
            raise ClusterError(f"{way} with {ranks} ranks printed {said} in place of its MPI_Init")
        return int(said[0]) / 1e9, float(said[1])


def slope(seconds: Mapping[int, float]) -> float:
    """Return the milliseconds of a further rank."""
    return statistics.linear_regression(list(seconds), list(seconds.values())).slope * 1000


def rows_of(known: Mapping[str, Mapping[int, Sequence[tuple[float, float]]]]) -> list[Row]:
    """Return a row for the whole run and one for MPI_Init of each way."""
    made: list[Row] = []
    for way, found in known.items():
        for part, what in enumerate(("whole", "MPI_Init")):
            medians = {ranks: statistics.median(run[part] for run in runs) for ranks, runs in found.items()}
            spread = max(max(r[part] for r in runs) / medians[ranks] for ranks, runs in found.items())
            row: Row = {"way": WAYS[way], "what": what, "rounds": min(map(len, found.values()))}
            row |= {f"ranks_{ranks}_seconds": median for ranks, median in medians.items()}
            made.append({**row, "most_times_median": spread, "ms_per_rank": slope(medians)})
    return made


def main() -> None:
    """Measure each way with each number of ranks, in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--image", required=True)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8, 16, 32, 64])
    parser.add_argument("--pods", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--where", default="")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    known: dict[str, dict[int, list[tuple[float, float]]]] = {
        way: {ranks: [] for ranks in options.ranks} for way in WAYS
    }
    with testbed.new_namespace(world=ROOT_PODS) as namespace:
        cluster = HookupCluster(options.image, options.pods, ["kubectl", "-n", namespace], namespace)
        for number in range(options.rounds):
            for ranks in options.ranks:
                for way in WAYS:
                    known[way][ranks].append(cluster.timed(way, ranks, min(ranks, options.pods)))
                    print(number, ranks, way, *known[way][ranks][-1], flush=True)
            save(options.file, with_load(options.where, load), rows_of(known))
        cluster.remove()


if __name__ == "__main__":
    run_program(main)
