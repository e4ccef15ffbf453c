"""``minicluster logs``: the log of the lead, or of another node."""

import click

from minicluster.commands import options
from minicluster.console import streams
from minicluster.errors import StateError
from minicluster.kube.kubectl import Kubernetes
from minicluster.waiting import logs


@click.command("logs")
@options.of_cluster
@options.node("A node, such as 3 or gpu-1; by default the lead.")
@click.option("-c", "--container", default="", help="A sidecar of the node; by default the container that runs Flux.")
@click.option("-f", "--follow", is_flag=True, help="Print new lines until the MiniCluster ends.")
@click.option("--all", "everything", is_flag=True, help="Then also print what the broker of the node has logged.")
def command(name: str, namespace: str, context: str, node: str, container: str, follow: bool, everything: bool) -> None:
    """Print the log of a MiniCluster's lead, or of another node.

    A node is a rank, or the name that `flux resource list` shows, with or without NAME- in front: 3, gpu-1,
    flux-sample-gpu-1.

    With --follow the log continues when another pod replaces the lead, or the node. A line on standard error says so.

    Flux's brokers log to files in their pods. --all prints that file after the log, as long as the pod runs.

    \b
    Examples:
      minicluster logs flux-sample -f
      minicluster logs flux-sample -c minicluster-agent
      minicluster logs flux-sample --node gpu-1
      minicluster logs flux-sample --all
    """
    if everything and (follow or container):
        raise click.UsageError(f"--all reads the log of a broker as it is now: drop {'-f' if follow else '-c'}")
    kubernetes = Kubernetes(context, namespace)
    with streams.until_unread():
        cluster, host = logs.find_log(kubernetes, name, node)
        where = (cluster, host, container)
        for part in logs.follow(*where, streams.say) if follow else logs.show(*where):
            streams.write(part.text)
        if everything:
            try:
                text = logs.read_broker_log(cluster, host)
            except StateError as error:
                streams.say(str(error))
            else:
                streams.say(f"the log of the broker of {host}:")
                streams.write(text.encode())
