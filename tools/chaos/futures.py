"""Kills leads, cuts connections, renews tokens and evicts pods, while a program of the SDK, or shells, submit jobs.

    MINICLUSTER_TEST_KUBECONFIG=$KUBECONFIG python -m tools.chaos.futures --jobs 400 --kills 6 --cuts 3 --tokens 1

Cluster and images are those of the pods' tests (CONTRIBUTING.md). Flux's state is on a claim, unless there is none.
Each job notes when it starts; each tenth may run again. At the end the program prints a report. It exits with 1 when
the client was told something else than what a job did: when it has no end, is lost or in doubt, or when an unmarked
job ran twice.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from minicluster.kube.names import REQUEUE_ATTRIBUTE
from minicluster.sdk import JobFailed, JobLost, MiniCluster
from minicluster.sdk.job_future import JobFuture

from tools.chaos.client import END_SECONDS, MAY_HAVE_RUN, Client, Heard, Login, verdict
from tools.chaos.cluster import installed, options_parser
from tools.chaos.jobs import starts
from tools.chaos.shells import Shells
from tools.chaos.troubles import FIRST_NODES
from tools.chaos.watched import say
from tools.releases import FluxRelease


@dataclass
class Futures(Client):
    """A program of the SDK."""

    cluster: MiniCluster = field(kw_only=True)
    futures: dict[str, JobFuture] = field(default_factory=dict)

    def submit(self, name: str, script: str, *, is_marked: bool) -> None:
        """Submit a job."""
        marked = {REQUEUE_ATTRIBUTE: 1} if is_marked else {}
        self.futures[name] = self.cluster.submit(["sh", "-c", script], name=name, attributes=marked)

    def told(self) -> dict[str, Heard]:
        """Wait for the futures; return what they say."""
        wait(self.futures.values(), END_SECONDS)
        return {name: told(name, future) for name, future in self.futures.items()}


def told(name: str, future: JobFuture) -> Heard:
    """Return what a future says of its job."""
    if not future.done():
        return Heard(future.id, "no end")
    error = future.exception(0)
    if error is None:
        job = future.result()
        return Heard(job.id, "completed", "" if job.stdout.strip() in (name, "") else repr(job.output))
    may_have_run = isinstance(error, JobFailed) and any(note in str(error) for note in MAY_HAVE_RUN)
    end = "may have run" if may_have_run else "lost" if isinstance(error, JobLost) else "in doubt"
    return Heard(future.id, end, f"{type(error).__name__}: {error}")


@contextmanager
def client(release: FluxRelease, login: Login, asked: argparse.Namespace) -> Iterator[Client]:
    """Connect the client that is asked for."""
    common: dict[str, Any] = {"login": login, "chance": random.Random(asked.seed)}
    with patch.dict(os.environ, KUBECONFIG=str(login.path)):
        if asked.shells:
            yield Shells(release, **common, number=asked.shells)
            return
        with MiniCluster.connect(release.name, release.namespace) as cluster:
            yield Futures(release, **common, cluster=cluster)


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = options_parser(__doc__)
    for name, number in (("jobs", 2000), ("kills", 20), ("cuts", 10), ("tokens", 5), ("evictions", 1)):
        parser.add_argument(f"--{name}", type=int, default=number, help=f"how many ({number})")
    parser.add_argument("--rate", type=float, default=5, help="jobs a second, at most (5)")
    parser.add_argument("--shells", type=int, default=0, help="submit by so many shells, and not by the SDK")
    parser.add_argument("--no-state", action="store_true", help="keep no state: jobs may be lost with their lead")
    return parser.parse_args()


def main() -> int:
    """Run, print the report and return the exit code."""
    asked = options()
    say(f"--scheduler {asked.scheduler} --seed {asked.seed}")
    begin = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        installed(asked.scheduler, Path(folder), keeps_state=not asked.no_state) as release,
    ):
        release.wait_for(f"0-{FIRST_NODES - 1}")
        login = Login(release, Path(folder, "kubeconfig"))
        login.begin()
        with client(release, login, asked) as chaos:
            chaos.go(asked)
            outcome = chaos.told()
        counts, faults = verdict(outcome, starts(release), may_lose=asked.no_state)
        seen: dict[str, Any] = {
            "seconds": round(time.monotonic() - begin),
            "troubles": dict(chaos.done),
            "jobs": counts,
            "seconds without a lead": [round(seconds, 1) for seconds in chaos.outages],
            "faults": faults,
        }
        print(json.dumps(seen, indent=2))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
