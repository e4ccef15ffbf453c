"""The lead of a MiniCluster, read from Kubernetes' objects: which pod it is, whether it is ready, and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from minicluster.cluster.pods import Pod, read_pods


@dataclass(frozen=True)
class Lead:
    """A pod that is, or was, the lead."""

    pod: Pod
    uid: str
    home: str  #: folder of Flux and of our files, in the container that runs Flux
    exit_code: int | None  #: once it has ended

    @property
    def is_ready(self) -> bool:
        """Whether the quorum is there, and Flux can be asked."""
        return self.pod.is_ready and self.pod.phase == "Running" and not self.pod.is_leaving

    @property
    def cluster(self) -> str:
        """Name of the MiniCluster: Kubernetes calls the pod NAME-0-SUFFIX."""
        return self.pod.name.rsplit("-", 2)[0]

    def flux_words(self, *words: str) -> list[str]:
        """Return the words that run flux here."""
        return [f"{self.home}/bin/flux", *words]


def labels_of_lead(name: str) -> str:
    """Return the label selector of the pods that are, or were, a MiniCluster's lead."""
    return f"batch.kubernetes.io/job-name={name},batch.kubernetes.io/job-completion-index=0"


def read_lead(pods: Mapping[str, Any]) -> Lead | None:
    """Return the lead, the newest in a list of its pods; None when the list is empty."""
    pod = read_pods(pods).get(0)
    if pod is None:
        return None
    item = next(item for item in pods["items"] if item["metadata"]["name"] == pod.name)
    container = next(one for one in item["spec"]["containers"] if one["name"] == pod.runner)
    home = next(one["value"] for one in container["env"] if one["name"] == "MINICLUSTER_HOME")
    return Lead(pod, item["metadata"]["uid"], home, _exit_code(item, pod.runner))


def _exit_code(pod: Mapping[str, Any], runner: str) -> int | None:
    for container in pod.get("status", {}).get("containerStatuses", []):
        if container["name"] == runner:
            ended = container.get("state", {}).get("terminated")
            return int(ended["exitCode"]) if ended else None
    return None


def code_of_work(how: str, lead: Lead | None) -> int | None:
    """Return the exit code of the work of a MiniCluster that has ended; None when it is unknown."""
    code = lead.exit_code if lead else None
    if how == "Complete":
        return 0
    return code if how == "Failed" and code else None
