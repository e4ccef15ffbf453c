"""A node of a MiniCluster, read from its pod: where Flux is there, and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from minicluster.cluster.pods import Pod, read_pods


@dataclass(frozen=True)
class Node:
    """A pod that is, or was, a node of a MiniCluster."""

    pod: Pod
    uid: str
    home: str  #: folder of Flux and of our files, in the container that runs Flux

    @property
    def exit_code(self) -> int | None:
        """Of its runner, once that has ended."""
        return self.pod.exit_code

    @property
    def is_running(self) -> bool:
        """Whether commands can run in its container."""
        return self.pod.phase == "Running"

    @property
    def host(self) -> str:
        """Name of its host: Kubernetes calls the pod HOST-SUFFIX."""
        return self.pod.name.rsplit("-", 1)[0]

    def __str__(self) -> str:
        return f"pod {self.pod.name}"


def read_node(pods: Mapping[str, Any], group: str, index: int) -> Node | None:
    """Return the newest pod of an index of a group, "" for the cluster's own; None when a list of pods has none."""
    pod = read_pods(pods, group).get(index)
    return Node(*parts(pods, pod)) if pod else None


def parts(pods: Mapping[str, Any], pod: Pod) -> tuple[Pod, str, str]:
    """Return the fields of a node, from a list of pods that has its pod."""
    item = next(item for item in pods["items"] if item["metadata"]["name"] == pod.name)
    container = next(one for one in item["spec"]["containers"] if one["name"] == pod.runner)
    home = next(one["value"] for one in container["env"] if one["name"] == "MINICLUSTER_HOME")
    return pod, item["metadata"]["uid"], home
