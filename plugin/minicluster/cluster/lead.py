"""The nodes of a MiniCluster, read from their pods, and the lead among them: whether it is ready, and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from minicluster.cluster.job import end_of
from minicluster.cluster.pods import REPLACED_CODES, Pod, read_pods


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


@dataclass(frozen=True)
class Lead(Node):
    """A pod that is, or was, the lead."""

    @property
    def is_ready(self) -> bool:
        """Whether the quorum is there, and Flux can be asked."""
        return self.pod.is_ready and self.pod.phase == "Running" and not self.pod.is_leaving

    @property
    def end(self) -> tuple[str, str] | None:
        """How the work ended, and why, if the runner has ended.

        Kubernetes sees that seconds later, or not at all if other containers keep the pod.
        """
        if self.exit_code is None or self.exit_code in REPLACED_CODES or self.pod.is_leaving:
            return None
        return "Failed" if self.exit_code else "Complete", f"the lead is {self.pod.why}" if self.pod.kept_by else ""

    @property
    def cluster(self) -> str:
        """Name of the MiniCluster: Kubernetes calls the pod NAME-0-SUFFIX."""
        return self.pod.name.rsplit("-", 2)[0]

    def flux_words(self, *words: str) -> list[str]:
        """Return the words that run flux here."""
        return [f"{self.home}/bin/flux", *words]

    def __str__(self) -> str:
        return "the lead"


def read_lead(pods: Mapping[str, Any]) -> Lead | None:
    """Return the lead, the newest in a list of its pods; None when the list is empty."""
    pod = read_pods(pods).get(0)
    return Lead(*parts(pods, pod)) if pod else None


def end_with(name: str, job: Mapping[str, Any], lead: Lead | None) -> tuple[str, str] | None:
    """Return how a MiniCluster ended, and why, as `end_of` does, or by its lead's runner alone; None while it lives."""
    return end_of(name, job) or (lead.end if lead else None)


def code_of_work(how: str, lead: Lead | None) -> int | None:
    """Return the exit code of the work of a MiniCluster that has ended; None when it is unknown."""
    code = lead.exit_code if lead else None
    if how == "Complete":
        return 0
    return code if how == "Failed" and code else None
