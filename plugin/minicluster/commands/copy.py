"""``minicluster copy``: files into a MiniCluster, and out of it."""

from functools import partial
from pathlib import Path

import click

from minicluster.commands import options
from minicluster.console import streams
from minicluster.exec import copy, upload
from minicluster.kube.kubectl import Kubernetes
from minicluster.waiting.ready import find_ready_lead, find_running_node


@click.command("copy")
@click.argument("source")
@click.argument("target")
@options.namespace("Namespace; by default the current one.")
@options.context()
@options.node("The node of PATH, such as 3 or gpu-1; by default the lead.")
@click.option("--all", "to_all", is_flag=True, help="Copy to all nodes that are up, not only to the lead.")
@options.no_wait
def command(source: str, target: str, namespace: str, context: str, node: str, to_all: bool, no_wait: bool) -> int:
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
