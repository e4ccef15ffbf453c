"""What a Job says of its pods, and of what Kueue does with it.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

from typing import Any, Mapping

#: Label of a Job in a queue of Kueue, and the scheduling gate of a Job whose size Kueue lets change
QUEUE = "kueue.x-k8s.io/queue-name"
ELASTIC = "kueue.x-k8s.io/elastic-job"
#: Label of the pods of a Job that Kueue has started
STARTED = "kueue.x-k8s.io/podset"


def is_fixed_by_kueue(job: Mapping[str, Any]) -> bool:
    """Say whether Kueue restarts all pods of a Job when its size changes."""
    return QUEUE in job["metadata"].get("labels", {}) and not is_elastic(job)


def pods(job: Mapping[str, Any]) -> int:
    """Return the number of pods that a Job should have."""
    return int(job["spec"]["completions"]) if job["spec"]["parallelism"] else 0


def is_emptying(job: Mapping[str, Any], most: int) -> bool:
    """Say whether the Job of a group is about to have no pods, after the first change of `Kube.empty`."""
    spec = job["spec"]
    return bool(spec.get("suspend") and spec["parallelism"]) and spec["completions"] > most


def is_held(job: Mapping[str, Any]) -> bool:
    """Say whether Kueue has yet to start a Job in its queue. It labels the pods then, and others never start."""
    labels = job["spec"]["template"].get("metadata", {}).get("labels", {})
    return QUEUE in job["metadata"].get("labels", {}) and STARTED not in labels


def is_elastic(job: Mapping[str, Any]) -> bool:
    """Say whether Kueue lets the size of a Job change."""
    return QUEUE in job["metadata"].get("labels", {}) and has_gate(job["spec"]["template"]["spec"])


def has_gate(pod: Mapping[str, Any]) -> bool:
    """Say whether the pods of a template, or a pod, may start only when Kueue has quota for them."""
    return ELASTIC in [gate["name"] for gate in pod.get("schedulingGates", [])]
