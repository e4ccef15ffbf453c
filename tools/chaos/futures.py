"""Kills leads, cuts connections, renews tokens and evicts pods, while a program of the SDK waits for its jobs.

    MINICLUSTER_TEST_KUBECONFIG=$KUBECONFIG python -m tools.chaos.futures --jobs 400 --kills 6 --cuts 3 --tokens 1

Cluster and images are those of the pods' tests (CONTRIBUTING.md). Flux's state is on a claim. Each job notes when it
starts; each tenth may run again. At the end the program prints a report. It exits with 1 when a future says something
else than what its job did: when it has no end, is in doubt, or when an unmarked job ran twice.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml
from minicluster.sdk import JobFailed, MiniCluster
from minicluster.sdk.jobs import JobFuture

from tools import testbed
from tools.chaos.cluster import installed, options_parser
from tools.chaos.jobs import NOTES, starts
from tools.chaos.troubles import FIRST_NODES
from tools.chaos.watched import MISSED, Watched, say
from tools.releases import FluxRelease

#: The user whose token is renewed, and the Secret with which a token ends
USER = "chaos-user"
#: Seconds without a token that counts, and those in which all futures must end after the last trouble
INVALID_SECONDS, END_SECONDS = 5.0, 1200.0
MARK = {"user.minicluster.requeue": 1}
#: How Flux says of a job that it may have run (docs/reference/life-cycle.md)
MAY_HAVE_RUN = ("failed to create guest ns", "reattach to running job is not implemented")


@dataclass
class Login:
    """A kubeconfig of a user of the namespace, whose token can be renewed."""

    release: FluxRelease
    path: Path
    count: int = 0

    def begin(self) -> None:
        """Make the user, who may do what `admin` may."""
        self.release.kubectl("create", "serviceaccount", USER)
        account = f"--serviceaccount={self.release.namespace}:{USER}"
        self.release.kubectl("create", "rolebinding", USER, "--clusterrole=admin", account)
        self.renew()

    def renew(self) -> None:
        """Let the last token end, and after a while write a new one."""
        if self.count:
            self.release.kubectl("delete", "secret", f"{USER}-{self.count}")
            time.sleep(INVALID_SECONDS)  # what is tested: a time without a token
        self.count += 1
        name = f"{USER}-{self.count}"
        self.release.kubectl("create", "secret", "generic", name)
        bound = ("--bound-object-kind=Secret", f"--bound-object-name={name}")
        token = self.release.kubectl("create", "token", USER, *bound).strip()
        config = yaml.safe_load(Path(os.environ[testbed.KUBECONFIG]).read_text(encoding="utf-8"))
        config["users"] = [{"name": each["name"], "user": {"token": token}} for each in config["users"]]
        self.path.write_text(json.dumps(config), encoding="utf-8")


@dataclass
class Futures(Watched):
    """The jobs of a program, and the troubles that it has."""

    login: Login
    chance: random.Random
    futures: dict[str, JobFuture] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)

    def submit(self, cluster: MiniCluster) -> None:
        """Submit a job that notes when it starts."""
        name = f"job-{len(self.futures)}"
        script = f"echo {name} $(date +%s.%N) >>{NOTES}; sleep {self.chance.choice((0, 0, 0.2, 1)):g}; echo {name}"
        marked = MARK if len(self.futures) % 10 == 0 else {}
        self.futures[name] = cluster.submit(["sh", "-c", script], name=name, attributes=marked)

    def kill(self, how: Callable[[], object]) -> None:
        """Kill the lead, and wait for the next one."""
        lead = self.release.broker(0)
        how()
        self.wait_for_lead(lead)

    def cut(self) -> None:
        """Cut the connection of the program: the kubectl that has it ends."""
        for task in Path("/proc/self/task").glob("*/children"):
            for child in task.read_text(encoding="ascii").split():
                if b"\0exec\0" in Path(f"/proc/{child}/cmdline").read_bytes():
                    os.kill(int(child), signal.SIGKILL)

    def troubles(self, asked: argparse.Namespace) -> Iterator[tuple[str, Callable[[], object]]]:
        """Yield what is to happen, in a random order."""
        kills: Sequence[tuple[str, Callable[[], object]]] = (
            ("broker killed", lambda: self.kill(lambda: self.release.kill_broker(0))),
            ("container killed", lambda: self.kill(lambda: self.release.kill_container(0))),
            ("pod killed", lambda: self.kill(self.delete)),
        )
        every = [kills[number % len(kills)] for number in range(asked.kills)]
        every += [("connection cut", self.cut)] * asked.cuts + [("token renewed", self.login.renew)] * asked.tokens
        every += [("evicted", lambda: self.kill(lambda: self.release.evict(self.release.pod(0))))] * asked.evictions
        yield from self.chance.sample(every, len(every))

    def delete(self) -> None:
        """Kill the lead's pod."""
        self.release.kubectl("delete", "pod", self.release.pod(0), "--wait=false", "--grace-period=0", "--force")

    def go(self, cluster: MiniCluster, asked: argparse.Namespace) -> None:
        """Submit jobs, some a second, and do all troubles meanwhile."""
        troubles = [*self.troubles(asked)]
        each = asked.jobs // (len(troubles) + 1)
        for name, trouble in [*troubles, ("", None)]:
            for _ in range(each):
                self.submit(cluster)
                time.sleep(self.chance.uniform(0, 2 / asked.rate))  # what is tested: a load
            if trouble:
                say(name)
                try:
                    trouble()
                    self.done[name] += 1
                except MISSED as error:
                    say(f"missed: {error}")
        wait(self.futures.values(), END_SECONDS)


def verdict(
    futures: Mapping[str, JobFuture], begun_at: Mapping[str, Sequence[float]]
) -> tuple[dict[str, int], list[str]]:
    """Return counts and faults, by the futures and by the times at which jobs started."""
    counts, faults = Counter[str](jobs=len(futures)), list[str]()
    for number, (name, future) in enumerate(futures.items()):
        begun, is_marked = len(begun_at.get(name, ())), number % 10 == 0
        if not future.done():
            counts["no end"] += 1
            faults.append(f"{name} ({future.id}): no end, started {begun} times")
            continue
        error = future.exception(0)
        if error is None:
            counts["completed"] += 1
            if not begun or future.result().stdout.strip() not in (name, ""):
                faults.append(f"{name} ({future.id}): completed, started {begun} times, {future.result().output!r}")
        elif isinstance(error, JobFailed) and any(note in str(error) for note in MAY_HAVE_RUN):
            counts["may have run"] += 1
        else:
            counts["in doubt"] += 1
            faults.append(f"{name} ({future.id}): {type(error).__name__}: {error}, started {begun} times")
        if begun > 1:
            counts["ran twice, marked" if is_marked else "ran twice"] += 1
            if not is_marked:
                faults.append(f"{name} ({future.id}): ran {begun} times")
    return dict(counts), faults


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = options_parser(__doc__)
    for name, number in (("jobs", 2000), ("kills", 20), ("cuts", 10), ("tokens", 5), ("evictions", 1)):
        parser.add_argument(f"--{name}", type=int, default=number, help=f"how many ({number})")
    parser.add_argument("--rate", type=float, default=5, help="jobs a second, at most (5)")
    return parser.parse_args()


def main() -> int:
    """Run, print the report and return the exit code."""
    asked = options()
    say(f"--scheduler {asked.scheduler} --seed {asked.seed}")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, installed(asked.scheduler, Path(folder)) as release:
        release.wait_for(f"0-{FIRST_NODES - 1}")
        login = Login(release, Path(folder, "kubeconfig"))
        login.begin()
        with (
            patch.dict(os.environ, KUBECONFIG=str(login.path)),
            MiniCluster.connect(release.name, release.namespace) as cluster,
        ):
            chaos = Futures(release, login=login, chance=random.Random(asked.seed))
            chaos.go(cluster, asked)
        counts, faults = verdict(chaos.futures, starts(release))
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
