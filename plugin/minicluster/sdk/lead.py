"""The lead of a MiniCluster: which pod it is, whether it is ready, and how it ended."""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from minicluster.sdk.channel import Result, finish
from minicluster.sdk.errors import ClosedError, EndedError, NotFoundError
from minicluster.sdk.kube import Kube, Object
from minicluster.status.ask import MADE_BY_CHART
from minicluster.status.objects import read_job, read_name
from minicluster.status.pods import Pod, read_pods


@dataclass(frozen=True)
class Lead:
    """A pod that is, or was, the lead."""

    pod: Pod
    uid: str
    home: str  #: folder of Flux and our files in it
    exit_code: int | None  #: once it has ended

    @property
    def is_ready(self) -> bool:
        """Whether the quorum is there, and Flux can be asked."""
        return self.pod.is_ready and self.pod.phase == "Running" and not self.pod.is_leaving

    def flux(self, kube: Kube, *words: str) -> Result:
        """Run flux to its end. Raises ApiError."""
        return finish(kube.run(self.pod.name, self.pod.runner, self.flux_words(*words)))

    def flux_words(self, *words: str) -> list[str]:
        """Return the words that run flux here."""
        return [f"{self.home}/bin/flux", *words]


def find_job(kube: Kube, name: str) -> Object:
    """Return the Job of a MiniCluster, by its own name or its release's. Raises NotFoundError, ApiError."""
    job = kube.get("job", name)
    if job is None:
        other = read_name(name, kube.list("job", MADE_BY_CHART))
        job = kube.get("job", other) if other else None
    if job is None or read_job(job) is None:
        raise NotFoundError(f"there is no MiniCluster {name} in {kube}: see `helm list -A` and give its namespace")
    return job


def release_of(job: Object) -> str:
    """Return the release that a Job belongs to."""
    metadata = job["metadata"]
    return str(metadata.get("annotations", {}).get("meta.helm.sh/release-name", metadata["name"]))


def find_lead(kube: Kube, name: str) -> Lead | None:
    """Return the pod of index 0, the newest that there is; None when there is none. Raises ApiError."""
    labels = f"batch.kubernetes.io/job-name={name},batch.kubernetes.io/job-completion-index=0"
    found = kube.list("pod", labels)
    pod = read_pods(found).get(0)
    if pod is None:
        return None
    item = next(item for item in found["items"] if item["metadata"]["name"] == pod.name)
    container = next(one for one in item["spec"]["containers"] if one["name"] == pod.runner)
    home = next(one["value"] for one in container["env"] if one["name"] == "MINICLUSTER_HOME")
    return Lead(pod, item["metadata"]["uid"], home, _exit_code(item, pod.runner))


def _exit_code(pod: Mapping[str, Any], runner: str) -> int | None:
    for container in pod.get("status", {}).get("containerStatuses", []):
        if container["name"] == runner:
            ended = container.get("state", {}).get("terminated")
            return int(ended["exitCode"]) if ended else None
    return None


def end_of(name: str, job: Object) -> tuple[str, str] | None:
    """Return how a MiniCluster ended, ``Complete``, ``Failed`` or ``Gone``, and why; None while it lives."""
    if not job:
        return "Gone", f"the Job {name} was deleted, or cleaned up after its end"
    if "deletionTimestamp" in job["metadata"]:
        return "Gone", f"the Job {name} is being deleted"
    found = read_job(job)
    return found.end if found else None


def leads(kube: Kube, name: str, seconds: float | None, stop: threading.Event | None = None) -> Iterator[Lead]:
    """Yield the lead as it is, and again when it may have changed, while the MiniCluster lives.

    Raises EndedError at its end, WaitTimeoutError after so many seconds, ClosedError when ``stop`` is set.
    """
    for job in kube.job_changes(name, seconds, stop):
        end = end_of(name, job)
        if end:
            raise EndedError(f"{name} in {kube} has ended: {': '.join(filter(None, end))}")
        lead = find_lead(kube, name)
        if lead:
            yield lead
    raise ClosedError(f"{name} was closed")


def wait_for_lead(kube: Kube, name: str, seconds: float | None, stop: threading.Event | None = None) -> Lead:
    """Return the lead as soon as it is ready. Raises what `leads` raises."""
    return next(lead for lead in leads(kube, name, seconds, stop) if lead.is_ready)
