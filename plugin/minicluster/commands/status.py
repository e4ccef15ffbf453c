"""``minicluster status``: a live MiniCluster at a glance, through kubectl."""

import json
import time
from contextlib import nullcontext, suppress

import click

from minicluster.commands import json_keys, options
from minicluster.console import streams
from minicluster.errors import StatusError
from minicluster.kube.kubectl import Kubernetes
from minicluster.status.document import status_of
from minicluster.status.table import table

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
def command(name: str, namespace: str, context: str, output: str, watch: bool) -> None:
    """Show the size, nodes, cores and jobs of a live MiniCluster."""
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
