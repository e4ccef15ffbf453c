"""``minicluster shell``: a shell on the lead, with Flux's environment."""

import click

from minicluster import streams
from minicluster.commands import options
from minicluster.kubectl import Kubernetes
from minicluster.live.ready import find_running_lead
from minicluster.live.run import run

SHELL = '. "$0/flux-view.sh"; if command -v bash >/dev/null; then exec bash; fi; exec sh'


@click.command("shell")
@options.of_cluster
@options.no_wait
def command(name: str, namespace: str, context: str, no_wait: bool) -> int:
    """Open a shell on the lead of a MiniCluster.

    `flux` is in PATH there. The shell is the image's bash, or its sh. It opens as soon as the lead's container
    runs, even before the quorum is reached, and also reads commands from a pipe.

    \b
    Examples:
      minicluster shell flux-sample
      echo 'flux resource list' | minicluster shell flux-sample
    """
    kubernetes = Kubernetes(context, namespace)
    lead = find_running_lead(kubernetes, name, streams.say, waits=not no_wait)
    return run(kubernetes, lead, ["sh", "-c", SHELL, lead.home])
