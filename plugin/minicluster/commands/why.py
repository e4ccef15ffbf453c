"""``minicluster why``: the reason, and the command that changes it."""

import shlex
from collections.abc import Iterator

import click

from minicluster.commands import options
from minicluster.console import streams
from minicluster.errors import UsageError, one_line
from minicluster.kube.kubectl import Kubernetes
from minicluster.status import why


@click.command("why")
@options.of_cluster
@click.argument("job", default="")
@click.option("--for", "request", metavar="OPTIONS", help="Say whether a job with these options of `flux submit` fits.")
def command(name: str, namespace: str, context: str, job: str, request: str | None) -> None:
    """Say why a MiniCluster is as it is, or why a job waits or failed.

    Without JOB: the state and its reason, what is wrong with which node, and why jobs wait. With the id of a job: what
    it waits for and what would let it run, where it runs, or how it ended, what it has used, with bars for each node,
    and the last lines of its output. With --for: whether such a job would run now, when, what it would wait for, or why
    it never can; nothing is submitted. The command that changes it follows, after $.

    \b
    Examples:
      minicluster why flux-sample
      minicluster why flux-sample f26dSTDwEF
      minicluster why flux-sample --for '-N4 -n16 -g1 -t 1h'
    """
    for text, way in _told(Kubernetes(context, namespace), name, job, request):
        lines = [streams.pasteable(one_line(text))]
        lines += [f"  $ {streams.pasteable_command(one_line(way))}"] if way else []
        streams.write("".join(f"{line}\n" for line in lines).encode())


def _told(kubernetes: Kubernetes, name: str, job: str, request: str | None) -> Iterator[why.Reason]:
    """Return the sentences. Raises UsageError."""
    if request is None:
        return why.of_job(kubernetes, name, job) if job else why.of_cluster(kubernetes, name)
    if job:
        raise UsageError(f"--for: it is about a job that is not submitted, and {job} is one that is: give one of both")
    try:
        options = shlex.split(request)
    except ValueError as error:
        raise UsageError(f"--for: {request!r} can't be split into words: {error}") from None
    return why.of_request(kubernetes, name, options)
