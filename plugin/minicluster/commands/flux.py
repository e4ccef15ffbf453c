"""``minicluster flux``: any flux command on the lead."""

import click

from minicluster.commands import options
from minicluster.console import streams
from minicluster.exec.submitted import run_flux
from minicluster.exec.upload import with_folder
from minicluster.kube.kubectl import Kubernetes


class FluxWords(options.Words):
    """The words after ``--`` are a flux command."""

    words = "-- FLUX-COMMAND..."

    def missing(self, ctx: click.Context) -> str:
        """Return what to say when there are none."""
        return f"put -- before the flux command: {ctx.command_path} NAME -- jobs"


@click.command("flux", cls=FluxWords)
@options.of_cluster
@options.no_wait
@click.option("--upload", metavar="DIR", help="Bring this folder to all nodes first, and run the program in it.")
@click.pass_context
def command(ctx: click.Context, name: str, namespace: str, context: str, no_wait: bool, upload: str | None) -> int:
    """Run a flux command in a MiniCluster.

    It runs on the lead, and its exit code becomes that of this command. On a terminal it gets a terminal too. Otherwise
    it uses the standard streams of this command and gets its signals. After the first Ctrl-C `flux run` warns; the
    second cancels the job.

    If the MiniCluster starts or sleeps, the command waits for it, at most ten minutes.

    With --upload DIR the files of a local folder, without those that git ignores, are on all nodes that are up before
    the job, and its program runs in the folder. What has not changed is not sent again.

    \b
    Examples:
      minicluster flux flux-sample -- run -N2 hostname
      minicluster flux flux-sample -- submit --cc=1-100 -n1 ./work.sh
      minicluster flux flux-sample -- batch -N4 < script.sh
      minicluster flux flux-sample --upload . -- run -N2 python train.py
    """
    kubernetes, words = Kubernetes(context, namespace), ctx.meta[options.WORDS_KEY]
    if upload is not None:
        words = with_folder(kubernetes, name, words, upload, streams.say)
    return run_flux(kubernetes, name, words, streams.say, waits=not no_wait)
