"""``minicluster run``: a command in a MiniCluster of its own, which ends with it."""

from typing import Any

import click

from minicluster import streams
from minicluster.commands import options
from minicluster.errors import UsageError
from minicluster.kubectl import Kubernetes
from minicluster.live.once import Stopped, run_once, stoppable
from minicluster.release.oneshot import Oneshot, made_up_name


class WordsOfWork(options.Words):
    """The words after ``--`` are the work; values may have it instead."""

    words = "[-- COMMAND...]"


@click.command("run", cls=WordsOfWork)
@click.option("--image", default="", help="Image of the command; by default that of the values.")
@click.option("-N", "--nodes", type=click.IntRange(min=1), help="Number of nodes, `size` of the values.")
@click.option(
    "-n", "--tasks", type=click.IntRange(min=0), help="Number of tasks; 0: one on each node. By default as the values."
)
@click.option("--cpu", default="", metavar="QUANTITY", help="CPUs of each node, as its request and its limit.")
@click.option("--memory", default="", metavar="QUANTITY", help="Memory of each node, as its request and its limit.")
@click.option("--gpus", type=click.IntRange(min=0), help="GPUs of each node: a limit of nvidia.com/gpu.")
@options.values("Values, as Helm takes them; repeatable.", click.Path(exists=True))
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="A value, as Helm takes it; repeatable.")
@click.option("--name", default="", help="Name of the release; by default a new one.")
@options.namespace("Its namespace; by default the current one.", names=("--namespace",))
@options.context()
@click.option(
    "--timeout",
    "seconds",
    type=options.Duration(),
    help="The most time for the start and the work, such as 90s or 5m; by default no limit.",
)
@click.option("--keep", is_flag=True, help="Leave the release when the work has ended.")
@click.pass_context
def command(ctx: click.Context, /, name: str, namespace: str, context: str, keep: bool, **asked: Any) -> int:
    """Run a command in a MiniCluster of its own.

    Installs a release, prints the log of its lead, and removes it when the work has ended. The exit code is that of
    the work. Ctrl-C cancels the work.

    The words after -- are the command; no shell reads them. Without them, the values have the command.

    \b
    Examples:
      minicluster run --image lammps:latest -N 4 -n 16 -- lmp -in in.lj
      minicluster run -f values.yaml --timeout 1h
    """
    words = ctx.meta[options.WORDS]
    if not (words or asked["files"] or asked["sets"]):
        raise UsageError("there is nothing to run: give a command after --, or values with one")
    run = Oneshot(name=name or made_up_name(), command=words, **asked)
    # apart: Ctrl-C on a terminal must not end Helm and kubectl
    where = Kubernetes(context, namespace, is_apart=True)
    try:
        with stoppable(streams.say):
            return run_once(where, run, streams.say, keeps=keep)
    except Stopped as stopped:
        return 128 + stopped.number
