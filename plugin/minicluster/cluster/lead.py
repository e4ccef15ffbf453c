"""The lead of a MiniCluster, read from Kubernetes' objects: which pod it is, whether it is ready, and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from minicluster.cluster.job import end_of
from minicluster.cluster.node import Node, parts
from minicluster.cluster.pods import REPLACED_CODES, labels_of_pods, read_pods


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


def labels_of_lead(name: str) -> str:
    """Return the label selector of the pods that are, or were, a MiniCluster's lead."""
    return labels_of_pods(name, 0)


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
