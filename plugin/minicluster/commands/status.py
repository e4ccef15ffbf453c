"""Commands that say how MiniClusters are: ``status``, ``list``, ``why`` and ``wait``."""

import json
import shlex
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from typing import Literal

import click

from minicluster.commands import json_keys, options
from minicluster.console import streams
from minicluster.console.terminal import StyledText
from minicluster.errors import StatusError, UsageError, one_line
from minicluster.kube.kubectl import Kubernetes
from minicluster.status.lookup import find_cluster

#: Seconds between two looks.
INTERVAL_SECONDS = 2


#: The help, with the keys
STATUS_HELP = f"""\
Show the size, nodes, cores and jobs of a live MiniCluster.

Uses kubectl. You need `get` and `list` of pods and `create` of pods/exec; without `get` of jobs, the size is the
number of pods. NAME is the release's name, or its nameOverride.

A node is up, drained (up, takes no jobs), missing (below the size, lost or still starting) or not started
(above the size, up to maxSize). Of a drained node, only the cores that jobs use count, as allocated.

{json_keys.in_words("status")}

\b
Examples:
  minicluster status flux-sample
  minicluster status flux-sample -n lab --watch
  minicluster status flux-sample -o json | jq .nodes.up
"""


@click.command("status", help=STATUS_HELP)
@options.of_cluster
@options.output
@click.option("-w", "--watch", is_flag=True, help=f"Show it again every {INTERVAL_SECONDS} s until Ctrl-C.")
def status_command(name: str, namespace: str, context: str, output: str, watch: bool) -> None:
    """Show the size, nodes, cores and jobs of a live MiniCluster."""
    with suppress(KeyboardInterrupt) if watch else nullcontext():
        _show(Kubernetes(context, namespace), name, output, watch)


def _show(kubernetes: Kubernetes, name: str, output: str, watch: bool) -> None:
    """Print the status, once or repeatedly. Raises StatusError if the first look fails."""
    from minicluster.status.document import status_of
    from minicluster.status.table import table

    shown = False
    while True:
        try:
            status = streams.pasteable(status_of(kubernetes, name))
        except StatusError as error:
            if not shown:
                raise
            click.clear()
            streams.say(str(error))
        else:
            text = json.dumps(status, indent=2) + "\n" if output == "json" else table(status, streams.width())
            if watch:
                click.clear()
            streams.write(text.encode())
            if not watch:
                if output != "json" and streams.width():
                    way = f"`minicluster dashboard {name}` shows it as a live page, `minicluster top {name}` here"
                    streams.say(way)
                return
        shown = True
        time.sleep(INTERVAL_SECONDS)


#: The help, with the keys
LISTING_HELP = f"List MiniClusters.\n\n{json_keys.in_words('list')}"


@click.command("list", help=LISTING_HELP)
@options.namespace("Their namespace; by default the current one.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="List the MiniClusters of all namespaces.")
@options.context()
@options.output
def list_command(namespace: str, everywhere: bool, context: str, output: str) -> None:
    """List MiniClusters."""
    from minicluster.status import listing

    rows = listing.find_all(Kubernetes(context, namespace), everywhere, datetime.now(UTC))
    if output == "json":
        streams.write(json.dumps(rows, indent=2).encode() + b"\n")
    elif rows:
        streams.write(listing.table(rows, everywhere, streams.width()).encode())
    else:
        streams.say(f"no MiniClusters in {'any namespace' if everywhere else Kubernetes(context, namespace)}")


@click.command("why")
@options.of_cluster
@click.argument("job", default="")
@click.option("--for", "request", metavar="OPTIONS", help="Say whether a job with these options of `flux submit` fits.")
def why_command(name: str, namespace: str, context: str, job: str, request: str | None) -> None:
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


def _told(kubernetes: Kubernetes, name: str, job: str, request: str | None) -> Iterator[tuple[str, str]]:
    """Return the sentences, each with the command that would change it, "" for none. Raises UsageError."""
    from minicluster.status import why

    if request is None:
        return why.of_job(kubernetes, name, job) if job else why.of_cluster(kubernetes, name)
    if job:
        raise UsageError(f"--for: it is about a job that is not submitted, and {job} is one that is: give one of both")
    try:
        options = shlex.split(request)
    except ValueError as error:
        raise UsageError(f"--for: {request!r} can't be split into words: {error}") from None
    return why.of_request(kubernetes, name, options)


@click.command("wait")
@options.of_cluster
@click.option(
    "--for",
    "until",
    type=click.Choice(["quorum", "end"]),
    default="quorum",
    show_default=True,
    help="Wait until Flux is ready, or until the work has ended.",
)
@click.option("--timeout", type=options.duration, help="How long to wait, such as 90s or 5m; by default forever.")
def wait_command(
    name: str, namespace: str, context: str, until: Literal["quorum", "end"], timeout: float | None
) -> int:
    """Wait for a MiniCluster.

    The exit code is 0 when the quorum is reached. If the MiniCluster ends, even before the quorum, it is that of the
    work. It is 1 after the timeout.

    \b
    Examples:
      minicluster wait flux-sample --timeout 5m
      minicluster wait flux-sample --for end && echo succeeded
    """
    from minicluster.waiting.wait import wait

    cluster = find_cluster(Kubernetes(context, namespace).within(timeout), name)
    end = wait(cluster, until, streams.say)
    streams.say(StyledText(end.text if end else f"{cluster.name}: Running", "wrong" if end and end.code else "well"))
    return end.code if end else 0
