"""The objects of the model's API server, as kubectl prints them."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from minicluster.cluster.pods import RUNNER
from minicluster.kube.names import INDEX
from minicluster.render.constants import GROUP_LABEL, IMMUTABLE

from tools.simulator.clock import EPOCH_SECONDS
from tools.simulator.kubelets import GRACE_SECONDS, Pod
from tools.simulator.kubernetes import Kubernetes

#: The namespace of all, and when the model began
NAMESPACE = "ns"
#: A container that runs Flux
FLUX = {"name": "flux", "env": [{"name": "MINICLUSTER_HOME", "value": "/mnt/flux"}]}


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(EPOCH_SECONDS + seconds, UTC).isoformat()


def _labels(job: str) -> dict[str, str]:
    """Return the labels of a Job, and of its pods."""
    cluster, group = ("mc", job.removeprefix("mc-")) if job.startswith("mc-") else (job, "")
    own = {"app.kubernetes.io/name": "minicluster", "app.kubernetes.io/instance": cluster}
    return {**own, GROUP_LABEL: group} if group else own


def job_object(kubernetes: Kubernetes, name: str) -> dict[str, Any]:
    """Return a Job; an empty map when there is none."""
    job = kubernetes.jobs.get(name)
    if not job or not job.is_there:
        return {}
    metadata = job.manifest["metadata"]
    annotations = {IMMUTABLE: json.dumps({"maxSize": str(len(job.ranks)), **job.record}), **metadata["annotations"]}
    own = {"name": name, "namespace": NAMESPACE, "creationTimestamp": _time(0.0), "labels": _labels(name)}
    return {
        "kind": "Job",
        "metadata": {**metadata, **own, "annotations": annotations},
        "spec": {**job.manifest["spec"], "backoffLimit": 100},
        "status": {"conditions": [{"type": "Complete", "status": "True"}] if job.has_ended else []},
    }


def config_object(kubernetes: Kubernetes) -> dict[str, Any]:
    """Return the ConfigMap of the cluster, which stays when its Job is gone."""
    own = {"name": "mc-config", "namespace": NAMESPACE, "creationTimestamp": _time(0.0), "labels": _labels("mc")}
    sizes = {"size": 1, "max_size": len(kubernetes.own.ranks)}
    metadata = {**own, "annotations": {"meta.helm.sh/release-name": "mc"}}
    return {"kind": "ConfigMap", "metadata": metadata, "data": {"agent.json": json.dumps(sizes)}}


def pod_object(kubernetes: Kubernetes, pod: Pod) -> dict[str, Any]:
    """Return a pod."""
    name = next(name for name, job in kubernetes.jobs.items() if pod.index in job.ranks)
    job = kubernetes.jobs[name]
    index = str(pod.index - job.ranks.start)
    own = {"app.kubernetes.io/component": "broker", "batch.kubernetes.io/job-name": name, INDEX: index}
    metadata = {
        "name": f"{name}-{index}-p{pod.number}",
        "namespace": NAMESPACE,
        "uid": f"p{pod.number}",
        "creationTimestamp": _time(pod.since),
        "labels": {**_labels(name), **own},
        "annotations": {RUNNER: "flux"},
        **({"deletionTimestamp": "now"} if pod.leaves else {}),
    }
    waits = {"reason": "PodInitializing"} if job.can_start else {"reason": "ImagePullBackOff", "message": "no image"}
    state = {"running": {"startedAt": _time(pod.since)}} if pod.runs else {"waiting": waits}
    is_ready = pod.index in kubernetes.instance.online and not pod.is_lost
    return {
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [FLUX], "nodeName": "node", "terminationGracePeriodSeconds": int(GRACE_SECONDS)},
        "status": {
            "phase": "Running" if pod.runs else "Pending",
            "conditions": [{"type": "Ready", "status": str(is_ready)}],
            "containerStatuses": [{"name": "flux", "state": state}],
        },
    }


def _all(kubernetes: Kubernetes) -> Mapping[str, Callable[[], Iterator[dict[str, Any]]]]:
    """Return what yields the objects of each kind, those of others being none."""
    return {
        "jobs": lambda: filter(None, (job_object(kubernetes, name) for name in kubernetes.jobs)),
        "pods": lambda: (pod_object(kubernetes, pod) for pod in kubernetes.pods.values()),
    }


def select(kubernetes: Kubernetes, kind: str, labels: str) -> dict[str, Any]:
    """Return the list of the objects that labels select."""
    found = _all(kubernetes).get(kind, lambda: iter(()))()
    return {"items": [each for each in found if _matches(each["metadata"]["labels"], labels)]}


def _matches(labels: Mapping[str, str], selector: str) -> bool:
    """Tell whether labels match a selector of keys, with or without a value."""
    return all(
        labels.get(key) == value if is_equal else key in labels
        for key, is_equal, value in (part.partition("=") for part in selector.split(",") if part)
    )
