"""A MiniCluster for everyday work: the values that the words of `minicluster create` become."""

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from minicluster.documents import yamlio
from minicluster.errors import SpecError, UsageError
from minicluster.kube.names import is_quantity, to_number, unmeant
from minicluster.kube.port import KubePort
from minicluster.release import helm
from minicluster.release.options import (
    ReleaseOptions,
    find_runner,
    node_values,
    of_container,
    read_values,
    run_install,
    set_words,
    words_of_install,
)
from minicluster.render.stream import INSTANCE

#: Where the nodes share a volume, and the file of the report on it
DATA, REPORT = "/data", "/data/jobs.jsonl"
#: The value by which all pods run on one Kubernetes node, and the labels that it needs
TOGETHER = "pod.template.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution"
HOSTNAME = "kubernetes.io/hostname"


class Keep(NamedTuple):
    """What is kept when pods go, and after the release; `read_keep` reads it."""

    capacity: str  #: of each claim, a quantity
    storage_class: str = ""  #: "": the default one
    of_one_node: str = ""  #: the class, in words, if only one Kubernetes node at a time can mount its volumes


def read_keep(text: str) -> Keep:
    """Return what SIZE or SIZE@CLASS means. Raises SpecError."""
    capacity, at, storage_class = text.partition("@")
    is_size = is_quantity(capacity) and to_number(capacity) > 0
    if not is_size or bool(at) != bool(storage_class):
        raise SpecError(f"{text!r} is not the size of a volume: write it as 10Gi, or 10Gi@CLASS")
    if why := unmeant("storage", capacity):
        raise SpecError(f"{capacity} is {why}")
    return Keep(capacity, storage_class)


@dataclass(frozen=True)
class CreateReleaseOptions(ReleaseOptions):
    """What is asked of a MiniCluster that stays."""

    most: int | None = None  #: nodes
    autoscales: bool = False
    keep: Keep | None = None
    idle: float | None = None  #: seconds without a job after which it ends


def check(asked: CreateReleaseOptions) -> None:
    """Raise UsageError for what makes no sense together; values that are given may have what lacks."""
    if asked.nodes and asked.most and asked.nodes > asked.most:
        raise UsageError(
            f"{asked.nodes} nodes are more than the maximum of {asked.most}: lower it, or raise the maximum"
        )
    if asked.autoscales and not (asked.most or asked.given or asked.values):
        raise UsageError("autoscaling needs a maximum: give --max, max_nodes in Python, the most nodes that may be")


def value_words(asked: CreateReleaseOptions) -> list[str]:
    """Return Helm's options for the values. Raises ToolError for values that Helm refuses."""
    own = _values(asked)
    runner = find_runner(asked, own)
    own = {**runner.usual, **own}
    if not runner.is_quiet:
        # `minicluster jobs` shows the jobs after the end, too
        own["report.log"] = True
    container = node_values(asked)
    if asked.keep:
        container |= {"volumes.data.path": DATA, **_claim("volumes.data.", asked.keep), "volumes.data.keep": True}
    if asked.keep and asked.keep.of_one_node:
        own[TOGETHER] = [{"labelSelector": {"matchLabels": {INSTANCE: runner.cluster}}, "topologyKey": HOSTNAME}]
    values = ["--values", "-"] if asked.values else []
    return [*values, *asked.given, *set_words({**own, **of_container(runner.number, container)})]


def _values(asked: CreateReleaseOptions) -> dict[str, Any]:
    """Return the values that are not of a container, by their paths."""
    values: dict[str, Any] = {"size": asked.nodes, "maxSize": asked.most}
    if asked.idle is not None:
        # what keeps its queue and grows by itself sleeps, and the next command wakes it
        sleeps = asked.autoscales and asked.keep
        values["autoscaling.suspendAfterSeconds" if sleeps else "endAfterSeconds"] = math.ceil(asked.idle)
    if asked.autoscales:
        values |= {"autoscaling.enabled": True, "autoscaling.min": asked.nodes}
    if asked.keep:
        values |= {"report.path": REPORT, **_claim("state.", asked.keep)}
    return {path: value for path, value in values.items() if value is not None}


def _claim(prefix: str, keep: Keep) -> dict[str, Any]:
    modes = ["ReadWriteOnce"] if keep.of_one_node else None
    claim = {"capacity": keep.capacity, "storageClass": keep.storage_class, "accessModes": modes}
    return {prefix + field: value for field, value in claim.items() if value}


def install(kubernetes: KubePort, asked: CreateReleaseOptions) -> str:
    """Install the release; return the command line that did it, for a shell. Raises ToolError."""
    helm.check_name(asked.name)
    words = words_of_install(asked, value_words(asked))
    run_install(kubernetes, words, asked.values or None)
    return command_line(kubernetes, words)


def command_line(kubernetes: KubePort, words: Sequence[str]) -> str:
    """Return a command of Helm as a person types it."""
    where = {"--namespace": kubernetes.namespace, "--kube-context": kubernetes.context}
    return shlex.join(["helm", *words, *(word for pair in where.items() if pair[1] for word in pair)])


def values_file(asked: CreateReleaseOptions) -> str:
    """Return the values as a file to go on with, those of the user's files among them. Raises ToolError."""
    helm.check_name(asked.name)
    values = read_values(asked, value_words(asked))
    line = shlex.join(["helm", *words_of_install(asked, ["--values", "FILE"])])
    return f"# {line}\n{yamlio.dump(values).decode().removeprefix('---').lstrip()}"
