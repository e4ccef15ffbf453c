"""A client of a MiniCluster that submits jobs, and the troubles that it has meanwhile."""

import argparse
import json
import os
import random
import signal
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tools import testbed
from tools.chaos.jobs import NOTES
from tools.chaos.watched import MISSED, Watched, say
from tools.releases import FluxRelease

#: The user whose token is renewed, and the Secret with which a token ends
USER = "chaos-user"
#: Seconds without a token that counts, and those in which all jobs must end after the last trouble
INVALID_SECONDS, END_SECONDS = 5.0, 1200.0
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


@dataclass(frozen=True)
class Heard:
    """What the client heard of a job."""

    id: str
    end: str  #: completed, may have run, refused, lost, no end or in doubt
    why: str = ""


@dataclass
class Client(Watched, ABC):
    """The jobs of a program, and the troubles that it has."""

    login: Login
    chance: random.Random
    count: int = 0  #: of the jobs
    done: Counter[str] = field(default_factory=Counter)

    @abstractmethod
    def submit(self, name: str, script: str, *, is_marked: bool) -> None:
        """Submit a job."""

    @abstractmethod
    def told(self) -> dict[str, Heard]:
        """Wait for the ends of all jobs; return what was told of each, by their names."""

    def submit_next(self) -> None:
        """Submit a job that notes when it starts."""
        name = f"job-{self.count}"
        script = f"echo {name} $(date +%s.%N) >>{NOTES}; sleep {self.chance.choice((0, 0, 0.2, 1)):g}; echo {name}"
        # each tenth job may run twice
        self.submit(name, script, is_marked=self.count % 10 == 0)
        self.count += 1

    def kill(self, how: Callable[[], object]) -> None:
        """Kill the lead, and wait for the next one."""
        lead = self.release.broker(0)
        how()
        self.wait_for_lead(lead)

    def cut(self) -> None:
        """Cut the connections of the program: the kubectls that have them end."""
        user = f"KUBECONFIG={self.login.path}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended
                if b"\0exec\0" in (process / "cmdline").read_bytes() and user in (process / "environ").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)

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

    def go(self, asked: argparse.Namespace) -> None:
        """Submit jobs, some a second, and do all troubles meanwhile."""
        troubles = [*self.troubles(asked)]
        each = asked.jobs // (len(troubles) + 1)
        for name, trouble in [*troubles, ("", None)]:
            for _ in range(each):
                self.submit_next()
                time.sleep(self.chance.uniform(0, 2 / asked.rate))  # what is tested: a load
            if trouble:
                say(name)
                try:
                    trouble()
                    self.done[name] += 1
                except MISSED as error:
                    say(f"missed: {error}")


def verdict(
    told: Mapping[str, Heard], begun_at: Mapping[str, Sequence[float]], *, may_lose: bool = False
) -> tuple[dict[str, int], list[str]]:
    """Return counts and faults, by what was told and by the times at which jobs started.

    ``may_lose``: a job may be lost with its lead.
    """
    counts, faults = Counter[str](jobs=len(told)), list[str]()
    for number, (name, job) in enumerate(told.items()):
        begun, is_marked = len(begun_at.get(name, ())), number % 10 == 0
        counts[job.end] += 1
        truths = {"completed": begun > 0, "may have run": True, "refused": not begun, "lost": may_lose}
        is_true = truths.get(job.end, False)
        if not is_true or (job.end == "completed" and job.why):
            faults.append(f"{name} ({job.id}): {job.end}, started {begun} times: {job.why}")
        if begun > 1:
            counts["ran twice, marked" if is_marked else "ran twice"] += 1
            if not is_marked:
                faults.append(f"{name} ({job.id}): ran {begun} times")
    return dict(counts), faults
