"""``minicluster shell``: a shell on the lead or another node, with Flux's environment."""

import click

from minicluster.cluster.pods import FIND_TOOLS
from minicluster.commands import options
from minicluster.console import streams
from minicluster.exec.run import run
from minicluster.kube.kubectl import Kubernetes
from minicluster.waiting.ready import find_running_node

#: Takes the folder of Flux
SHELL = f'. "$0/flux-view.sh"; shell=$({FIND_TOOLS}command -v bash); exec "${{shell:-/bin/sh}}"'


@click.command("shell")
@options.of_cluster
@options.node("A node, such as 3 or gpu-1; by default the lead.")
@options.no_wait
def command(name: str, namespace: str, context: str, node: str, no_wait: bool) -> int:
    """Open a shell on the lead of a MiniCluster, or on another node.

    `flux` is in PATH there. The shell is the image's bash, or its sh. It opens as soon as the container that runs Flux
    does, even before the quorum is reached, and also reads commands from a pipe.

    A node is a rank, or the name that `flux resource list` shows, with or without NAME- in front: 3, gpu-1,
    flux-sample-gpu-1.

    \b
    Examples:
      minicluster shell flux-sample
      minicluster shell flux-sample --node gpu-1
      echo 'flux resource list' | minicluster shell flux-sample
    """
    kubernetes = Kubernetes(context, namespace)
    shell_node = find_running_node(kubernetes, name, node, streams.say, waits=not no_wait)
    return run(kubernetes, shell_node, ["/bin/sh", "-c", SHELL, shell_node.home])
