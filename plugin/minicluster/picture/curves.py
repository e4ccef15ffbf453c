"""The queue over time: how many jobs wait and run, the cores that they use, and the nodes that are up."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from minicluster.status.table import left_at

#: The most samples that are kept
MOST_RECORDS = 4000


class Sample(NamedTuple):
    """The queue at a time, until the next sample."""

    t: float  #: seconds since the epoch
    waiting: int = 0  #: jobs
    running: int = 0
    cores: int = 0  #: that jobs use
    up: int = 0  #: nodes


#: A time, and by how much it changes the numbers of a sample
Step = tuple[float, Mapping[str, int]]


def cores_of(job: Mapping[str, Any]) -> int:
    """Return the cores of a job; where a record lacks them, its tasks."""
    return int(job.get("ncores") or job.get("ntasks") or 0)


def steps_of(job: Mapping[str, Any]) -> Iterator[Step]:
    """Yield how a job changes the queue."""
    submit, start, end = job.get("t_submit"), job.get("t_run"), left_at(job)
    if submit:
        yield submit, {"waiting": 1}
    if start:
        yield start, {"waiting": -1, "running": 1, "cores": cores_of(job)}
    if end and start:
        yield end, {"running": -1, "cores": -cores_of(job)}
    elif end:
        yield end, {"waiting": -1}


def curve(steps: Iterable[Step]) -> list[Sample]:
    """Return the samples of steps in any order."""
    samples: list[Sample] = []
    now = Sample(0.0)
    for when, change in sorted(steps, key=lambda step: step[0]):
        sums = {name: getattr(now, name) + change.get(name, 0) for name in Sample._fields[1:]}
        now = Sample(when, **sums)
        if samples and samples[-1].t == when:
            samples.pop()
        samples.append(now)
    return thinned(samples)


def thinned(samples: list[Sample], most: int = MOST_RECORDS) -> list[Sample]:
    """Return at most so many samples, evenly over time; of those that are close the one with the most that runs."""
    if len(samples) <= most:
        return samples
    begin, end = samples[0].t, samples[-1].t
    width = (end - begin) / (most / 2) or math.inf
    kept: dict[int, Sample] = {}
    for sample in samples:
        place = int((sample.t - begin) / width)
        if place not in kept or sample.running >= kept[place].running:
            kept[place] = sample
    return [*list(kept.values())[: most - 1], samples[-1]]
