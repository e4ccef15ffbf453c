"""``minicluster run``: a command in a MiniCluster of its own, which ends with it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from minicluster.commands import options
from minicluster.commands.flux import upload_of, upload_options
from minicluster.commands.given_values import Parsed
from minicluster.console import streams
from minicluster.errors import SpecError, UsageError
from minicluster.kube.kubectl import Kubernetes

if TYPE_CHECKING:
    from minicluster.exec.upload import Upload


def _sizes(text: str) -> list[int]:
    """Return sizes of MiniClusters, such as 2,4,8, in their order. Raises SpecError."""
    parts = text.split(",")
    if not all(re.fullmatch("[1-9][0-9]{0,5}", part) for part in parts) or len(set(parts)) < len(parts):
        raise SpecError(f"{text!r} is not a list of sizes: write different numbers with commas, as 2,4,8")
    return [int(part) for part in parts]


class Tasks(click.IntRange):
    """A number of tasks. Helm and kubectl have another -n."""

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        if not re.fullmatch("-?[0-9]+", str(value)):
            self.fail(f"{value!r} is not a number of tasks; --namespace gives the namespace.", param, ctx)
        return int(super().convert(value, param, ctx))


#: The parameters of a MiniCluster of its own
OF_OWN = ("image", "cpu", "memory", "gpus", "files", "sets", "name", "keep", "sizes", "iterations", "output")


@click.command("run", cls=options.Words, words="[-- COMMAND...]")
@click.option("--in", "inside", metavar="NAME", help="Run it in an instance of its own in this MiniCluster.")
@options.of_nodes("Number of nodes, `size` of the values.")
@click.option(
    "-n", "--tasks", type=Tasks(), help="Number of tasks; by default one on each node with -N, else that of the values."
)
@click.option("--name", default="", help="Name of the release; by default a new one.")
@options.namespace("Namespace; by default the current one.", names=("--namespace",))
@options.context()
@click.option(
    "--timeout",
    "seconds",
    type=options.duration,
    help="Limit of time for the start and the work, such as 90s or 5m; by default none.",
)
@click.option("--keep", is_flag=True, help="Keep the release when the work has ended.")
@click.option("--sizes", type=Parsed(_sizes), metavar="N,N,...", help="Run the command at each of these sizes.")
@click.option("--iterations", type=click.IntRange(min=1), help="Number of runs at each size; by default 1.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder for the results of --sizes; runs that are recorded there are skipped.",
)
@upload_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    namespace: str,
    context: str,
    keep: bool,
    sizes: Sequence[int] | None,
    iterations: int | None,
    output: Path | None,
    **asked: Any,
) -> int:
    """Run a command in a MiniCluster of its own.

    Installs a release, prints the log of its lead, and removes it when the work has ended. The exit code is that of
    the work. Ctrl-C cancels it. The words after -- are the command; no shell reads them. Without, it is in the values.

    With --in NAME it has an instance of Flux of its own, on -N whole nodes of a MiniCluster that stays. With --upload
    DIR it runs in a local folder, without what git ignores; --fetch brings back what it has made there.
    With --sizes and --output the command runs several times, each time as a job of its own, in one MiniCluster for
    each size. What they print and how they ended goes into the folder. The exit code is 0 if all runs ended with 0,
    else 1. If you stop it, the same command continues.

    \b
    Examples:
      minicluster run --image lammps:latest -N 4 -n 16 -- lmp -in in.lj
      minicluster run -f values.yaml --timeout 1h
      minicluster run --in pool -N 2 -- lmp -in in.lj
      minicluster run --image python:3 -N 2 --upload . --fetch 'out/' -- python train.py
      minicluster run --image lammps:latest --sizes 2,4,8 --iterations 5 --output results -- lmp -in in.lj
    """
    upload = upload_of({key: asked.pop(key) for key in ("upload", "fetched", "packages")})
    if (inside := asked.pop("inside")) is not None:
        return _inside(Kubernetes(context, namespace), ctx, inside, upload)
    asked["command"] = ctx.meta[options.WORDS_KEY]
    _check(sizes, iterations, output, keep=keep, asked=asked, upload=upload)
    # apart: Ctrl-C on a terminal must not end Helm and kubectl. Settled: what is installed is removed in the same place
    where = Kubernetes(context, namespace, is_apart=True).settled()
    return _of_its_own(where, asked, upload, (sizes or (), iterations or 1, output), keeps=keep)


def _of_its_own(
    where: Kubernetes,
    asked: Mapping[str, Any],
    upload: Upload | None,
    series: tuple[Sequence[int], int, Path | None],
    *,
    keeps: bool,
) -> int:
    """Run the command in a MiniCluster of its own, or in one of each size; return the exit code."""
    # not with --in, where a third of the modules would be for nothing
    from minicluster.experiments.matrix import Matrix, run_matrix
    from minicluster.lifecycle import temporary
    from minicluster.release.oneshot import Oneshot

    run, (sizes, iterations, output) = Oneshot(**asked), series
    try:
        with temporary.stoppable(streams.say):
            if sizes and output:
                return run_matrix(where, run, Matrix(sizes, iterations, output), streams.say)
            return temporary.run_release(where, run, upload, streams.say, streams.write, keeps=keeps)[0]
    except temporary.Stopped as stopped:
        if output:
            streams.say(f"{output} has the runs that have ended: the same command goes on with the others")
        return 128 + stopped.number


def _inside(kubernetes: Kubernetes, ctx: click.Context, name: str, upload: Upload | None) -> int:
    """Run the command in a MiniCluster that stays. Raises UsageError for what only one of its own can have."""
    words, given = ctx.meta[options.WORDS_KEY], ctx.params
    long = {each.name: each.opts[-1] for each in ctx.command.params}
    if own := next((long[key] for key in OF_OWN if given[key]), None):
        raise UsageError(f"{own} is for a MiniCluster of its own, and {name} is there: leave out {own} or --in")
    if not words:
        shell = f"`minicluster flux {name} -- alloc -N{given['nodes'] or 1}`"
        raise UsageError(f"there is nothing to run: give a command after --; {shell} opens a shell in an instance")
    nodes, tasks = given["nodes"] or 1, given["tasks"] or None
    if tasks:
        from minicluster.release.oneshot import too_few_tasks

        if why := too_few_tasks(tasks, nodes):
            raise UsageError(why)
    from minicluster.exec.inside import Work, run_inside

    return run_inside(kubernetes, name, Work(words, nodes, tasks, given["seconds"], upload), streams.say)


def _check(
    sizes: Sequence[int] | None,
    iterations: int | None,
    output: Path | None,
    *,
    keep: bool,
    asked: Mapping[str, Any],
    upload: Upload | None,
) -> None:
    """Raise UsageError for options that make no sense together, and when there is nothing to run."""
    needs_sizes = "needs --sizes: give the sizes to run at, such as 2,4,8"
    for is_wrong, why in (
        (sizes and not output, "--sizes needs --output: name the folder for the results"),
        (not sizes and output, f"--output {needs_sizes}"),
        (not sizes and iterations, f"--iterations {needs_sizes}"),
        (sizes and asked["nodes"], "--sizes has the numbers of nodes: drop --nodes"),
        (sizes and keep, "--keep is for a single run: with --sizes each MiniCluster is removed before the next"),
        (sizes and upload, "--upload is for a single run: drop --sizes"),
        (
            not (asked["command"] or asked["files"] or asked["sets"]),
            "there is nothing to run: give a command after --, or values with one",
        ),
    ):
        if is_wrong:
            raise UsageError(why)
