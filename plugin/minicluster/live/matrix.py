"""Runs a command at several sizes, several times each, and leaves the results in a folder."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from minicluster.errors import OutputError, StateError
from minicluster.kube.kubectl import Kubernetes
from minicluster.live import plot, results
from minicluster.live.lookup import Cluster
from minicluster.live.results import Results
from minicluster.live.single_job import run_job
from minicluster.live.temporary import TemporaryRelease
from minicluster.release.experiment import Experiment, plan
from minicluster.release.oneshot import Oneshot
from minicluster.streams import Say

PLOT = "wall-time.png"


@dataclass(frozen=True)
class Matrix:
    """How often a command runs at which sizes, and where its results go."""

    sizes: Sequence[int]
    iterations: int
    folder: Path

    def runs(self) -> list[tuple[int, int]]:
        """Return size and iteration of each run, in their order."""
        return [(size, iteration) for size in self.sizes for iteration in range(1, self.iterations + 1)]


def run_matrix(kubernetes: Kubernetes, asked: Oneshot, matrix: Matrix, say: Say) -> int:
    """Run what the folder has no record of; return 0 if all runs have ended with 0, else 1.

    Each size has a MiniCluster of its own, which is removed, whatever is raised. A size that fails is told, and the
    next one begins. Raises UsageError for a folder of another matrix; SpecError, ToolError for a refusal; OutputError.
    """
    found = Results(matrix.folder)
    plans = {size: plan(asked, size) for size in matrix.sizes}
    values = {size: one.values for size, one in plans.items()}
    found.check(values)
    # runs of other sizes are in the same table
    found.check({size: plan(asked, size).values for size in found.sizes() if size not in plans})
    found.keep_values(values)
    found.keep_table()
    for size in matrix.sizes:
        missing = [n for other, n in matrix.runs() if other == size and found.record(size, n) is None]
        if len(missing) < matrix.iterations:
            say(f"size {size}: {matrix.iterations - len(missing)} of {matrix.iterations} runs are in {matrix.folder}")
        try:
            if missing:
                _run_size(kubernetes, plans[size], missing, found, say)
        except StateError as error:
            say(f"size {size}: {error}")
    _draw(found, say)
    ends = [found.record(*run) for run in matrix.runs()]
    return 0 if all(end and end["exit_code"] == 0 for end in ends) else 1


def _run_size(
    kubernetes: Kubernetes, experiment: Experiment, iterations: Iterable[int], found: Results, say: Say
) -> None:
    """Run some iterations of a size, one after the other, in one MiniCluster. Raises StateError, ToolError."""
    release = TemporaryRelease(kubernetes, experiment.asked, say)
    try:
        cluster = release.install()
        for iteration in iterations:
            _run(cluster, experiment, iteration, found, say)
        release.has_ended = True
    finally:
        release.remove()


def _run(cluster: Cluster, experiment: Experiment, iteration: int, found: Results, say: Say) -> None:
    """Run one iteration, and write its output and its record. Raises StateError, OutputError."""
    path = found.output(experiment.size, iteration)
    try:
        with results.beside(path).open("wb") as output:
            job, events = run_job(cluster, experiment.words, output, say)
        results.beside(path).replace(path)
    except OSError as error:
        raise OutputError(f"{path} can't be written: {error.strerror}") from None
    record = results.record(experiment.size, iteration, job, events)
    found.keep(record)
    took = "" if record["seconds"] is None else f" after {record['seconds']:.3f} s"
    code = record["exit_code"]
    how = f"{job['result']}{took}" if code is None else f"exit code {code}{took}"
    say(f"size {experiment.size}, iteration {iteration}: {how}")


def _draw(found: Results, say: Say) -> None:
    try:
        plot.draw(found.records(), found.folder / PLOT)
    except ImportError:
        say("no plot: matplotlib is not installed")
