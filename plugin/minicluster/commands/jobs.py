"""``minicluster jobs``: what ran, also after the end."""

import json
import time

import click

from minicluster import streams
from minicluster.commands import options
from minicluster.kube.kubectl import Kubernetes
from minicluster.live.reported import SHOWN_JOBS, find_jobs, table


@click.command("jobs")
@options.of_cluster
@click.option(
    "--count",
    type=click.IntRange(min=0),
    default=SHOWN_JOBS,
    show_default=True,
    help="How many of the jobs that have ended: the last ones.",
)
@options.output
def command(name: str, namespace: str, context: str, count: int, output: str) -> None:
    """List the jobs of a MiniCluster.

    The active ones, and the last of those that have ended.

    While the lead runs they are those of its queue, and those that Flux has forgotten. After the end they are read from
    the lead's log, which needs report.log; with report.path alone, the error names the file.

    \b
    With -o json each job is a line. What a job doesn't have is null:
      id, number    its id as a text and as a number
      name          text
      state         DEPEND, PRIORITY, SCHED, RUN, CLEANUP or INACTIVE
      result        COMPLETED, FAILED, CANCELED or TIMEOUT
      exit_code     128 and the signal's number if a signal ended it; null if it never ran
      exception     what else ended it, such as timeout: NOTE
      nodes, ranks  a hostlist and an idset
      ntasks, urgency, queue
      t_submit, t_run, t_cleanup, t_inactive  seconds since the epoch
      user          the attributes below attributes.user of its jobspec

    \b
    Examples:
      minicluster jobs flux-sample
      minicluster jobs flux-sample -o json | jq -r 'select(.result == "FAILED").name'
    """
    rows = find_jobs(Kubernetes(context, namespace), name, streams.say, count)
    if output == "json":
        streams.write("".join(json.dumps(row) + "\n" for row in rows).encode())
    elif rows:
        streams.write(table(rows, time.time(), streams.width()).encode())
    else:
        streams.say(f"no jobs in {name}")
