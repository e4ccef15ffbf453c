"""Random kills, evictions, drains, resizes, lost Kubernetes nodes and API outages, while jobs arrive on a MiniCluster.

    MINICLUSTER_TEST_KUBECONFIG=$KUBECONFIG python -m tools.chaos --hours 0.1 --seed 7

Cluster and images are those of the pods' tests (CONTRIBUTING.md). The MiniCluster keeps Flux's state on a claim, which
is a folder of the Kubernetes nodes. At the end the program prints a report. It exits with 1 when a waiting job was
lost, when a job ran twice outside of the documented window, when the number of nodes is wrong, or when something
leaked.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path

from tools.chaos.cluster import FLUX, installed, options_parser
from tools.chaos.jobs import Jobs, starts
from tools.chaos.leaks import footprint, leaks
from tools.chaos.troubles import FIRST_NODES, Chaos
from tools.chaos.verdict import verdict
from tools.chaos.watched import OverError, say


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = options_parser(__doc__)
    parser.add_argument("--hours", type=float, default=0.5, help="how long (0.5)")
    parser.add_argument("--resizes", type=int, default=0, help="do so many of these instead")
    parser.add_argument("--kills", type=int, default=0, help="and so many kills of brokers, half of them the lead's")
    parser.add_argument("--pause", type=float, default=5, help="seconds after each trouble, at most (5)")
    parser.add_argument(
        "--drain", action="append", metavar="NODE", default=[], help="a node that may be drained; more than once"
    )
    parser.add_argument(
        "--lose",
        nargs=3,
        default=[],
        metavar=("NODE", "TAKE", "BRING"),
        help="a node that may be lost, the command line that takes it away for good, and the one that brings it back",
    )
    parser.add_argument(
        "--folder", type=Path, help="folder for the state, the same on all Kubernetes nodes (a temporary one)"
    )
    parser.add_argument("--apiserver", type=int, metavar="PID", help="API server to stop for 5-30 s: a local cluster's")
    return parser.parse_args()


def main() -> int:
    """Run, print the report and return the exit code."""
    arguments = options()
    say(f"--scheduler {arguments.scheduler} --seed {arguments.seed}")
    begin = time.monotonic()
    tainted = (*arguments.drain, *arguments.lose[:1])
    with (
        tempfile.TemporaryDirectory() as folder,
        installed(arguments.scheduler, Path(folder), arguments.folder, tainted) as cluster,
    ):
        cluster.wait_for(f"0-{FIRST_NODES - 1}")
        before = footprint(cluster, FIRST_NODES)
        chance = random.Random(arguments.seed)
        jobs = Jobs(cluster, chance)
        chaos = Chaos(cluster, jobs, chance, arguments.drain, arguments.apiserver, arguments.lose)
        settled, counts, after = 0.0, {"jobs": 0}, before
        try:
            by_count = chaos.by_count(arguments.resizes, arguments.kills)
            is_counted = arguments.resizes or arguments.kills
            chaos.go(by_count if is_counted else chaos.for_seconds(3600 * arguments.hours), arguments.pause)
            settled = chaos.settle()
            counts, faults = verdict(jobs.submitted, starts(cluster), jobs.known(), chaos.kills)
            after = footprint(cluster, FIRST_NODES)
            faults += leaks(before, after, min(len(jobs.submitted), FLUX["keptJobs"]))
        except OverError as error:
            faults = [str(error)]
        seen = {
            "seconds": round(time.monotonic() - begin),
            "troubles": dict(chaos.done),
            "missed": dict(chaos.missed),
            "jobs": counts,
            "seconds without a lead": [round(seconds, 1) for seconds in chaos.outages],
            "whole and idle after": round(settled, 1),
            "before": before,
            "after": after,
            "faults": faults,
        }
        print(json.dumps(seen, indent=2))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
