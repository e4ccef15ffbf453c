"""``minicluster output``: what a job printed."""

import click

from minicluster.commands import options
from minicluster.console import streams
from minicluster.exec.submitted import show_output
from minicluster.kube.kubectl import Kubernetes


@click.command("output")
@options.cluster
@click.argument("job")
@options.namespace("Namespace; by default the current one.")
@options.context()
@click.option("-f", "--follow", is_flag=True, help="Go on until the job has ended.")
@options.no_wait
def command(name: str, job: str, namespace: str, context: str, follow: bool, no_wait: bool) -> int:
    """Print what a job of a MiniCluster has printed.

    Its standard output goes to standard output, and its standard error to standard error. JOB is the id of the job, as
    `minicluster jobs` and Flux show it, or its number. The job may wait, run or have ended; Ctrl-C does not end it. If
    its output goes to files, a line says to which, and they are printed.

    The exit code is 0 when the output was printed, however the job ended. It is 1 if there is no such job, or Flux has
    forgotten its output.

    \b
    Examples:
      minicluster output flux-sample f2a9RQ8Kb
      minicluster output flux-sample f2a9RQ8Kb -f
    """
    return show_output(Kubernetes(context, namespace), name, job, streams.say, follows=follow, waits=not no_wait)
