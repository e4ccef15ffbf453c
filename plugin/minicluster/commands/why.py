"""``minicluster why``: the reason, and the command that changes it."""

import click

from minicluster.commands import options
from minicluster.console import streams
from minicluster.errors import one_line
from minicluster.kube.kubectl import Kubernetes
from minicluster.status import why


@click.command("why")
@options.of_cluster
@click.argument("job", default="")
def command(name: str, namespace: str, context: str, job: str) -> None:
    """Say why a MiniCluster is as it is, or why a job waits or failed.

    Without JOB: the state and its reason, what is wrong with which node, and why jobs wait. With the id of a job: what
    it waits for and what would let it run, where it runs, or how it ended, with the last lines of its output. The
    command that changes it follows, after $.

    \b
    Examples:
      minicluster why flux-sample
      minicluster why flux-sample f26dSTDwEF
    """
    kubernetes = Kubernetes(context, namespace)
    told = why.of_job(kubernetes, name, job) if job else why.of_cluster(kubernetes, name)
    for text, way in told:
        lines = [streams.pasteable(one_line(text))]
        lines += [f"  $ {streams.pasteable_command(one_line(way))}"] if way else []
        streams.write("".join(f"{line}\n" for line in lines).encode())
