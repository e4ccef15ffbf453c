"""Jobs that note when they start."""

import json
import random
import time
from dataclasses import dataclass, field
from typing import Any

from tools.chaos.verdict import Ended
from tools.clients import until
from tools.releases import FluxRelease

#: A folder that all pods share.
SHARED = "/chaos"
NOTES = f"{SHARED}/runs"
#: Seconds until a greedy job has ended: other jobs run before it.
GREEDY_SECONDS = 60.0


@dataclass
class Jobs:
    """Jobs of a cluster, with random sizes and lengths."""

    release: FluxRelease
    chance: random.Random
    #: When each job was accepted, in seconds of the clock.
    submitted: dict[str, float] = field(default_factory=dict)
    count: int = 0

    def submit(self) -> None:
        """Submit a job that notes when it starts. It counts once Flux has accepted it."""
        self.count += 1
        name = f"chaos-{self.count}"
        nodes = self.chance.choice((1, 1, 1, 2, 3))
        script = f'[ "$FLUX_TASK_RANK" != 0 ] || echo {name} $(date +%s.%N) >>{NOTES}; sleep {self.length():.1f}'
        words = (f"--job-name={name}", f"-N{nodes}", f"-n{nodes}", "--exclusive", "sh", "-c", script)
        assert self.release.flux(0, "submit", *words), "not accepted"
        self.submitted[name] = time.time()

    def length(self) -> float:
        """Return how many seconds a job takes."""
        return self.chance.uniform(0.2, 6)

    def known(self) -> dict[str, Ended]:
        """Return the jobs that `minicluster jobs` knows: also those that Flux has forgotten."""
        kept = records(self.release, self.count * 2)
        return {row["name"]: Ended(row["result"], row["t_run"] is not None) for row in kept}

    def eat(self) -> str:
        """Run a job that takes all memory of its node; return what ended it."""
        words = ("--job-name=greedy", "--urgency=31", "-n1", "tail", "/dev/zero")
        job = self.release.flux(0, "submit", *words).strip()
        assert job, "not accepted"
        until(lambda: self.release.flux(0, "jobs", "-n", "-o", "{state}", job).strip() == "INACTIVE", GREEDY_SECONDS)
        return self.release.flux(0, "jobs", "-n", "-o", "{exception.type}: {exception.note}", job).strip()


def records(release: FluxRelease, count: int) -> list[dict[str, Any]]:
    """Return the jobs that `minicluster jobs` knows, at most so many."""
    words = ("jobs", release.name, "--namespace", release.namespace, "--count", count, "--output", "json")
    return [json.loads(line) for line in release.cluster.output("minicluster", *words).splitlines()]


def starts(release: FluxRelease) -> dict[str, list[float]]:
    """Return when jobs started, as they noted it."""
    by_job: dict[str, list[float]] = {}
    for name, moment in (line.split() for line in release.exec(0, "cat", NOTES).splitlines()):
        by_job.setdefault(name, []).append(float(moment))
    return by_job
