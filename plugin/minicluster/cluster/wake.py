"""Resumes a MiniCluster that its agent suspended because it was idle."""

import json
from collections.abc import Mapping
from typing import Any, Protocol

from minicluster.cluster.groups import SUSPENDED
from minicluster.cluster.job import read_job
from minicluster.errors import StateError
from minicluster.kubectl import CommandError, Kubernetes

#: The agent's name in managedFields. The agent gives up all entries of this name, so it also cleans up after us
MANAGER = "minicluster-agent"
#: Attempts: the Job's controller may change the Job at the same time
TRIES = 5


class Api(Protocol):
    """The Job of one MiniCluster."""

    def get(self) -> Mapping[str, Any]:
        """Return the Job with its managedFields; an empty map when there is none."""

    def patch(self, change: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Merge a change into the Job, as MANAGER, and return the Job; None if its resourceVersion has changed."""


def is_asleep(job: Mapping[str, Any]) -> bool:
    """Say whether a Job was suspended because it was idle, and nobody has resumed it."""
    found = read_job(job) if job else None
    return bool(found and found.is_asleep)


def was_woken(job: Mapping[str, Any]) -> bool:
    """Say whether a Job was suspended, and somebody other than Kueue has resumed it."""
    found = read_job(job) if job else None
    conditions = job.get("status", {}).get("conditions", [])
    is_resumed = ("Suspended", "False") in [(each["type"], each["status"]) for each in conditions]
    return bool(found and not found.queue and is_resumed)


def wake(api: Api) -> None:
    """Resume a Job that sleeps; leave others as they are. Afterwards no client owns `suspend`, so Helm may set it.

    Raises StateError when others change it again and again.
    """
    after = None
    for _ in range(TRIES):
        job = api.get()
        if not is_asleep(job):
            return
        change = {"resourceVersion": job["metadata"]["resourceVersion"], "annotations": {SUSPENDED: None}}
        after = api.patch({"metadata": change, "spec": {"suspend": False}})
        if after:
            break
    if not after:
        raise StateError("the Job was changed again and again while it was resumed: try again")
    for _ in range(TRIES):
        metadata = after.get("metadata", {})
        others = [entry for entry in metadata.get("managedFields", []) if entry["manager"] != MANAGER]
        if len(others) == len(metadata.get("managedFields", [])):
            return
        change = {"resourceVersion": metadata["resourceVersion"], "managedFields": others}
        after = api.patch({"metadata": change}) or api.get()


class ByKubectl:
    """The Job, asked for by kubectl. Each method raises CommandError."""

    def __init__(self, kubernetes: Kubernetes, name: str) -> None:
        """Send no request yet."""
        self._kubernetes, self._name = kubernetes, name

    def get(self) -> Mapping[str, Any]:
        """Return the Job."""
        return self._kubernetes.get("job", self._name, "--show-managed-fields")

    def patch(self, change: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Merge a change into the Job."""
        change_words = ("--type=merge", f"--field-manager={MANAGER}", f"--patch={json.dumps(change)}")
        answer_words = ("--output=json", "--show-managed-fields")
        try:
            text = self._kubernetes.kubectl("patch", "job", self._name, *change_words, *answer_words)
        except CommandError as error:
            if "(Conflict)" in error.reason:
                return None
            raise
        after: dict[str, Any] = json.loads(text)
        return after
