"""Runs a command at several sizes, several times each, and leaves the results in a folder."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from minicluster.console import streams
from minicluster.console.terminal import Progress, Share, StyledText, failure
from minicluster.errors import OutputError, SpecError, StateError
from minicluster.experiments import results
from minicluster.kube.kubectl import Kubernetes
from minicluster.lifecycle.temporary import TemporaryRelease
from minicluster.release import oneshot

PLOT, REPORT_PAGE = "wall-time.png", "report.html"


@dataclass(frozen=True)
class Matrix:
    """How often a command runs at which sizes, and where its results go."""

    sizes: Sequence[int]
    iterations: int
    folder: Path

    def runs(self) -> list[tuple[int, int]]:
        """Return size and iteration of each run, in their order."""
        return [(size, iteration) for size in self.sizes for iteration in range(1, self.iterations + 1)]


class Experiment(NamedTuple):
    """The runs of one size."""

    asked: oneshot.Oneshot  #: of its MiniCluster, which runs no command itself
    job: oneshot.SingleJob  #: of each run


def run_matrix(kubernetes: Kubernetes, asked: oneshot.Oneshot, matrix: Matrix, say: streams.Say) -> int:
    """Run what the folder has no record of; return 0 if all runs have ended with 0, else 1.

    Each size has a MiniCluster of its own, which is removed, whatever is raised. A size that fails is told, and the
    next one begins. Raises UsageError for a folder of another matrix; SpecError, ToolError for a refusal; OutputError.
    """
    records = results.Results(matrix.folder)
    plans = {size: plan(asked, size) for size in matrix.sizes}
    values = {size: one.job.values for size, one in plans.items()}
    records.check(values)
    # runs of other sizes are in the same table
    records.check({size: plan(asked, size).job.values for size in records.sizes() if size not in plans})
    records.keep_values(values, {size: one.job.given for size, one in plans.items()})
    records.keep_table()
    missing = {
        size: [n for other, n in matrix.runs() if other == size and not records.record(size, n)] for size in plans
    }
    tell = _RunTeller(len(matrix.runs()), sum(map(len, missing.values())), say)
    with streams.waiting():
        for size, iterations in missing.items():
            there = matrix.iterations - len(iterations)
            if there:
                say(f"size {size}: {there} of {matrix.iterations} runs are in {matrix.folder}")
            try:
                if iterations:
                    _run_size(kubernetes, plans[size], iterations, records, tell)
            except StateError as error:
                say(failure(f"size {size}: {error}"))
    _draw(records, say)
    ends = [records.record(*run) for run in matrix.runs()]
    good = sum(end["exit_code"] == 0 for end in ends if end)
    text = f"{good} of {len(ends)} runs have ended with exit code 0, see {matrix.folder}"
    say(StyledText(text, "well" if good == len(ends) else "wrong"))
    return 0 if good == len(ends) else 1


class _RunTeller:
    """Says what a matrix does; each step has the share of the runs that have ended, and when all will have."""

    def __init__(self, total: int, missing: int, say: streams.Say) -> None:
        self._total, self._missing, self._say = total, missing, say
        self._ran, self._begin = 0, time.monotonic()

    def __call__(self, text: str) -> None:
        if isinstance(text, Progress):
            text = Progress(text, text.phase, self._share(), is_quiet=text.is_quiet, tone=text.tone)
        self._say(text)

    def _share(self) -> Share:
        left, end = self._missing - self._ran, None
        if self._ran and left:
            end = time.monotonic() + (time.monotonic() - self._begin) / self._ran * left
        return Share(self._total - left, self._total, end)

    def begin(self, size: int, iteration: int) -> None:
        """Say which run begins."""
        number = self._total - self._missing + self._ran + 1
        self(Progress(f"run {number} of {self._total}: size {size}, iteration {iteration}", is_quiet=True))

    def end(self, text: str, code: int | None) -> None:
        """Say how it has ended."""
        self._ran += 1
        self(StyledText(text, "wrong" if code else ""))


def _run_size(
    kubernetes: Kubernetes,
    experiment: Experiment,
    iterations: Iterable[int],
    records: results.Results,
    tell: _RunTeller,
) -> None:
    """Run some iterations of a size, one after the other, in one MiniCluster. Raises StateError, ToolError."""
    release = TemporaryRelease(kubernetes, experiment.asked, tell)
    try:
        release.install()
        for iteration in iterations:
            _run(release, experiment, iteration, records, tell)
        release.has_ended = True
    finally:
        release.remove()


def _run(
    release: TemporaryRelease, experiment: Experiment, iteration: int, records: results.Results, tell: _RunTeller
) -> None:
    """Run one iteration, and write its output and its record. Raises StateError, OutputError."""
    path = records.output(experiment.job.size, iteration)
    tell.begin(experiment.job.size, iteration)
    try:
        with results.beside(path).open("wb") as output:
            job, events = release.run_job(experiment.job.words, output, tell)
        results.beside(path).replace(path)
    except OSError as error:
        raise OutputError(f"{path} can't be written: {error.strerror}") from None
    record = results.record(experiment.job.size, iteration, job, events)
    records.keep(record)
    took = "" if record["seconds"] is None else f" after {record['seconds']:.3f} s"
    code = record["exit_code"]
    how = f"{job['result']}{took}" if code is None else f"exit code {code}{took}"
    tell.end(f"size {experiment.job.size}, iteration {iteration}: {how}", code)


def _draw(records: results.Results, say: streams.Say) -> None:
    try:
        results.draw_plot(records.records(), records.folder / PLOT)
    except ImportError:
        say("no plot: matplotlib is not installed")
    try:
        results.draw_page(records.records(), records.folder / REPORT_PAGE)
    except ImportError:
        say("no report.html: pip install 'minicluster[dashboard]'")


def plan(asked: oneshot.Oneshot, size: int) -> Experiment:
    """Return what runs at a size; the name of its release ends with the size.

    Raises SpecError for values that are refused, or make more than one job; ToolError.
    """
    one = replace(asked, name=f"{asked.name}-{size}", nodes=size)
    job = oneshot.job_of(one, "a matrix")
    if job.size != size:
        raise SpecError(f"the values set size to {job.size}, and a matrix has its own sizes: drop it from --set")
    return Experiment(replace(one, is_idle=True), job)
