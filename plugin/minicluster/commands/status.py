"""``minicluster status``: a live MiniCluster at a glance, through kubectl."""

import json
import time
from contextlib import nullcontext, suppress

import click

from minicluster.commands import options
from minicluster.console import streams
from minicluster.errors import StatusError
from minicluster.kube.kubectl import Kubernetes
from minicluster.status.document import status_of
from minicluster.status.table import table

#: Seconds between two looks.
INTERVAL_SECONDS = 2


@click.command("status")
@options.of_cluster
@options.output
@click.option("-w", "--watch", is_flag=True, help=f"Show it again every {INTERVAL_SECONDS} s until Ctrl-C.")
def command(name: str, namespace: str, context: str, output: str, watch: bool) -> None:
    """Show the size, nodes, cores and jobs of a live MiniCluster.

    Uses kubectl. You need `get` and `list` of pods and `create` of pods/exec; without `get` of jobs, the size is the
    number of pods. NAME is the release's name, or its nameOverride.

    A node is up, drained (up, takes no jobs), missing (below the size, lost or still starting) or not started
    (above the size, up to maxSize). Of a drained node, only the cores that jobs use count, as allocated.

    \b
    Keys of the JSON; those from "flux" on are null until the lead's broker answers:
      name, namespace  texts
      age              seconds
      state            Suspended, Starting, Running, Ending, Complete, Failed, Gone (ended and cleaned up) or Unknown
      why              the reason for the state; "" if there is none
      size, maxSize    nodes; maxSize is null while it is unknown
      failures         {pods, most, groups}: pods that failed, and the most that may before the Job ends; groups
                       are Jobs of their own, {NAME: pods}
      sizeFrom         "job", or "pods" where jobs can't be read
      pods             [{ranks, reason}]: pods by phase and reason, ranks as 0-2,5
      containers       [{name, ranks, reason}]: sidecars that fail, even while their pods run
      locations        [{ranks, node, zone}] by Kubernetes node; zone is null where Kubernetes does not tell it
      flux             Flux's version
      scheduler        {name, version, queuePolicy, matchPolicy}; Fluxion's, else only the name
      autoscaling      {min, max}; null when it is off
      quorum           {needed, reached}
      nodes            {up, drained, missing, notStarted}, numbers of nodes
      drained          [{ranks, reason}]
      missing          [{ranks, reason}]
      cores, gpus      {free, allocated, total} of the nodes that are online
      jobs             {pending, running, done, failed, canceled, timeout, purged}; the last four are part of done; of
                       purged jobs Flux has no record any more, nor of how they ended
      queues           [{name, pending, running, problem}] of the queues with names; problem: why it starts no jobs
      waiting          [{jobs, reason}]: why the first 200 pending jobs wait, jobs by their ids
      longestWait      seconds that the first pending job has waited for resources
      problems         texts: what fails in the lead's pod beside Flux
      bursts           {registered, up}: nodes of other clusters that may join
      groups           [{name, size, maxSize, autoscaling, nodes}]

    \b
    Examples:
      minicluster status flux-sample
      minicluster status flux-sample -n lab --watch
      minicluster status flux-sample -o json | jq .nodes.up
    """
    with suppress(KeyboardInterrupt) if watch else nullcontext():
        _show(Kubernetes(context, namespace), name, output, watch)


def _show(kubernetes: Kubernetes, name: str, output: str, watch: bool) -> None:
    """Print the status, once or repeatedly. Raises StatusError if the first look fails."""
    shown = False
    while True:
        text, error = _look(kubernetes, name, output)
        if error and not shown:
            raise error
        if watch:
            click.clear()
        if error:
            streams.say(str(error))
        else:
            streams.write(text.encode())
        if not watch:
            if output != "json" and not error and streams.width():
                streams.say(f"`minicluster dashboard {name}` shows it as a live page, `minicluster top {name}` here")
            return
        shown = True
        time.sleep(INTERVAL_SECONDS)


def _look(kubernetes: Kubernetes, name: str, output: str) -> tuple[str, StatusError | None]:
    """Return the text to print, or the error."""
    try:
        status = streams.pasteable(status_of(kubernetes, name))
    except StatusError as error:
        return "", error
    return (json.dumps(status, indent=2) + "\n" if output == "json" else table(status, streams.width())), None
