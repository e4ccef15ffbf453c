"""Refusals of work that could never run: it asks for more nodes or cores than the cluster can have."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from minicluster.render import work
from minicluster.render.hostlist import count, registered
from minicluster.render.model import MiniClusterModel
from minicluster.render.resources import nodes

#: Flags whose value decides how many nodes and cores a job needs, by what they count (flux-submit(1), flux-batch(1)).
COUNT_FLAGS = {
    "nodes": ("-N", "--nodes"),
    "tasks": ("-n", "--ntasks", "--nslots"),
    "cores": ("-c", "--cores-per-task", "--cores-per-slot"),
}
#: Flags that count in other ways.
OTHERS = ("--cores", "--tasks-per-node", "--tasks-per-core", "--gpus-per-node", "--exclusive", "-x")


class Shape(NamedTuple):
    """What a job asks for: nodes (0: any), tasks (0: one for each node), and the cores of a task."""

    nodes: int
    tasks: int
    cores: int

    @property
    def cores_of_a_node(self) -> int:
        """The cores that each node must have."""
        tasks = self.tasks or self.nodes or 1
        return -(-tasks // (self.nodes or tasks)) * self.cores


def shape(words: Sequence[str]) -> Shape | None:
    """Return what the flags of a job ask for; None if one of them counts in a way that is not known here.

    >>> shape(["-N", "1", "-n4", "--cores-per-task=2"])
    Shape(nodes=1, tasks=4, cores=2)
    """
    counts = {"nodes": "0", "tasks": "0", "cores": "1"}
    for word, following in pairwise([*words, ""]):
        if word.partition("=")[0] in OTHERS:
            return None
        for key, names in COUNT_FLAGS.items():
            if word in names:
                counts[key] = following
            elif word.startswith(tuple(f"{name}=" for name in names[1:])):
                counts[key] = word.partition("=")[2]
            elif word.startswith(names[0]):
                counts[key] = word[2:]
    return (
        Shape(**{key: int(text) for key, text in counts.items()}) if all(map(str.isdecimal, counts.values())) else None
    )


def impossible(cluster: MiniClusterModel) -> Iterator[str]:
    """Yield why the work of the cluster could never run."""
    words = work.flags(cluster)
    # a user's broker.toml may name other resources; the work of a live cluster was submitted for its former size
    asked = None if cluster.flux["brokerConfig"] or cluster.installed or not words else shape(words)
    if not asked:
        return
    tasks, size, flags = cluster.spec["tasks"], cluster.size, cluster.flux["optionFlags"]
    hosts = registered(cluster)
    if asked.nodes > hosts:
        yield (
            f"flux.optionFlags is {flags}, which asks for {asked.nodes} nodes of at most {hosts}: the work could never "
            "run; set size, which asks for as many"
        )
    elif asked.tasks and asked.nodes > asked.tasks:
        yield (
            f"flux.optionFlags is {flags}, which asks for more nodes ({asked.nodes}) than tasks ({asked.tasks}): Flux "
            "refuses that; set size and tasks"
        )
    elif _able(cluster, asked.cores_of_a_node) < max(asked.nodes, 1):
        subject = f"tasks is {tasks} and size {size}" + (f", flux.optionFlags is {flags}" if flags else "")
        place = next(place for place, container in cluster.containers.items() if container is cluster.runner)
        yield (
            f"{subject}: that is {asked.cores_of_a_node} cores of a node, and Flux has {_cores(cluster)} there: the "
            f"work could never run; ask for less, or set {place}.cores, otherwise a node's CPU limit or request"
        )


def _able(cluster: MiniClusterModel, cores: int) -> int:
    """Return how many nodes have at least ``cores`` cores, or may have them: only Flux finds how many they have."""
    return sum(count(part.hosts) for part in nodes(cluster) if part.cores is None or part.cores >= cores)


def _cores(cluster: MiniClusterModel) -> int:
    """Return the most cores of a node."""
    return max(part.cores or 0 for part in nodes(cluster))
