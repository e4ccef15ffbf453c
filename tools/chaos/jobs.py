"""Jobs that note when they start."""

import random
import time
from dataclasses import dataclass, field

from tools.chaos.verdict import Ended
from tools.releases import FluxRelease

NOTES = "/chaos/runs"


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
        """Return the jobs that Flux knows of."""
        lines = self.release.flux(0, "jobs", "-a", "-n", "--count=0", "-o", "{name} {result} {t_run}").splitlines()
        rows = [line.split() for line in lines]
        return {name: Ended(result, float(run or 0) > 0) for name, result, run in rows}

    def starts(self) -> dict[str, list[float]]:
        """Return when jobs started, as they noted it."""
        found: dict[str, list[float]] = {}
        for name, moment in (line.split() for line in self.release.exec(0, "cat", NOTES).splitlines()):
            found.setdefault(name, []).append(float(moment))
        return found
