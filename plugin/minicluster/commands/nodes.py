"""Commands for one node, by default the lead: ``shell``, ``logs`` and ``copy``."""

from functools import partial
from pathlib import Path

import click

from minicluster.cluster.pods import FIND_TOOLS
from minicluster.commands import options
from minicluster.console import streams
from minicluster.errors import StateError
from minicluster.kube.kubectl import Kubernetes
from minicluster.waiting.ready import find_ready_lead, find_running_node

#: Takes the folder of Flux
SHELL = f'. "$0/flux-view.sh"; shell=$({FIND_TOOLS}command -v bash); exec "${{shell:-/bin/sh}}"'


@click.command("shell")
@options.of_cluster
@options.node("A node, such as 3 or gpu-1; by default the lead.")
@options.no_wait
def shell_command(name: str, namespace: str, context: str, node: str, no_wait: bool) -> int:
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
    from minicluster.exec.run import run

    kubernetes = Kubernetes(context, namespace)
    shell_node = find_running_node(kubernetes, name, node, streams.say, waits=not no_wait)
    return run(kubernetes, shell_node, ["/bin/sh", "-c", SHELL, shell_node.home])


@click.command("logs")
@options.of_cluster
@options.node("A node, such as 3 or gpu-1; by default the lead.")
@click.option("-c", "--container", default="", help="A sidecar of the node; by default the container that runs Flux.")
@click.option("-f", "--follow", is_flag=True, help="Print new lines until the MiniCluster ends.")
@click.option("--all", "everything", is_flag=True, help="Then also print what the broker of the node has logged.")
def logs_command(
    name: str, namespace: str, context: str, node: str, container: str, follow: bool, everything: bool
) -> None:
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
    from minicluster.waiting import logs

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


@click.command("copy")
@click.argument("source")
@click.argument("target")
@options.where
@options.node("The node of PATH, such as 3 or gpu-1; by default the lead.")
@click.option("--all", "to_all", is_flag=True, help="Copy to all nodes that are up, not only to the lead.")
@options.no_wait
def copy_command(source: str, target: str, namespace: str, context: str, node: str, to_all: bool, no_wait: bool) -> int:
    """Copy files into a MiniCluster, or out of it.

    One of SOURCE and TARGET is NAME:PATH, a path on the lead, or on another node. SOURCE is a file or a folder. If
    TARGET is a folder, or ends with /, the copy is in it and has the name of SOURCE; the folder is made if it is
    missing. Otherwise TARGET is the name of the copy.

    A PATH without a / at its start is relative to the working directory of the container. The image needs tar. A file
    that changes meanwhile is copied with a warning.

    \b
    Examples:
      minicluster copy in.lj flux-sample:/tmp/data/
      minicluster copy flux-sample:/tmp/data results
      minicluster copy --all inputs flux-sample:/tmp
      minicluster copy --node gpu-1 flux-sample:/tmp/trace .
    """
    from minicluster.exec import copy, upload

    (of, path), (to, place) = copy.split(source), copy.split(target)
    if of and to:
        raise click.UsageError(f"{source} and {target} are both in a MiniCluster: give a path here for one of them")
    if not (of or to):
        raise click.UsageError(f"{source} and {target} are both paths here: write one of them as NAME:PATH")
    if not (path if of else place):
        raise click.UsageError(f"{source if of else target} has no path: write one after the colon")
    if to_all and node:
        raise click.UsageError(f"--all copies to all nodes, and --node {node} to one: drop one of them")
    if to_all and of:
        raise click.UsageError(f"--all copies to all nodes: {source} must be the target, not the source")
    if to_all and not place.startswith("/"):
        raise click.UsageError(f"--all needs an absolute path, and {target} has none: write {to}:/{place}")
    if to:
        Path(path).stat()  # before anything waits
    kubernetes = Kubernetes(context, namespace)
    if to_all:
        lead = find_ready_lead(kubernetes, to, streams.say, waits=not no_wait)
        there = copy.copy_into(kubernetes, lead, path, place, streams.say)
        return upload.distribute(kubernetes, lead, *there, streams.say)
    find = partial(find_running_node, text=node) if node else find_ready_lead
    where = find(kubernetes, of or to, say=streams.say, waits=not no_wait)
    if of:
        copy.copy_from(kubernetes, where, path, place, streams.say)
    else:
        copy.copy_into(kubernetes, where, path, place, streams.say)
    return 0
