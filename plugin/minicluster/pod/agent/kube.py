"""The agent's client of Kubernetes, with the pod's own token: its Job and events, its other objects, CPU use.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import ssl
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from time import gmtime, strftime
from typing import Any, Callable, Mapping

#: Label of a Job in a queue of Kueue, and the scheduling gate of a Job whose size Kueue lets change
QUEUE = "kueue.x-k8s.io/queue-name"
ELASTIC = "kueue.x-k8s.io/elastic-job"
#: Label of the pods of a Job that Kueue has started
STARTED = "kueue.x-k8s.io/podset"
TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REQUEST_SECONDS = 10.0
#: How often a change of the Job is tried that its controller may cross
PATCH_TRIES = 4
#: Name of the agent in the Job's managedFields
MANAGER = "minicluster-agent"
#: Words in the API server's refusal to change the size of a gang
GANG = "gang-scheduled PodGroup"
#: Labels that Kubernetes puts on the pods of an Indexed Job
JOB_NAME, INDEX = "batch.kubernetes.io/job-name", "batch.kubernetes.io/job-completion-index"


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


class KubeError(Exception):
    """Kubernetes refused a call, or can't be reached; a message of one line."""


class Kube:
    """The API server, for the agent of one Job."""

    def __init__(self, server: str, namespace: str, job: str, token: Path = TOKEN) -> None:
        """Keep the addresses. The token is read for each call, because Kubernetes renews it."""
        self.server, self.namespace, self.name, self.token = server, namespace, job, token
        self.job = f"/apis/batch/v1/namespaces/{namespace}/jobs/{job}"
        self.deployment = f"/apis/apps/v1/namespaces/{namespace}/deployments/{job}"
        self.budget = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/{job}"
        self._selector = "?" + urllib.parse.urlencode({"labelSelector": f"{JOB_NAME}={job}"})

    def of_group(self, group: str) -> Kube:
        """Return the API server for the Job of a group, "" for the cluster's own."""
        return Kube(self.server, self.namespace, f"{self.name}-{group}", self.token) if group else self

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """Call the API. Raises KubeError."""
        try:
            headers = {"Content-Type": kind, "Authorization": f"Bearer {(self.token / 'token').read_text().strip()}"}
            data = None if body is None else json.dumps(body).encode()
            asked = urllib.request.Request(self.server + path, data, headers, method=method)
            with self._opener().open(asked, timeout=REQUEST_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise KubeError(f"{method} {path}: {error.code} {_message(error)}") from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise KubeError(f"{method} {path}: {error}") from None

    def _opener(self) -> urllib.request.OpenerDirector:
        """Return what asks the API server itself: a proxy of the image or of flux.environment is for the work."""
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if self.server.startswith("https:"):
            certificate = str(self.token / "ca.crt")
            handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=certificate)))
        return urllib.request.build_opener(*handlers)

    def _get(self, path: str) -> dict[str, Any]:
        return dict(self.call("GET", path))

    def get_job(self) -> dict[str, Any]:
        """Return the Job. Raises KubeError."""
        return self._get(self.job)

    def resize(self, job: Mapping[str, Any], size: int) -> dict[str, Any]:
        """Change the size of the Job, and return it. Raises KubeError, also if others have changed the Job since."""
        if QUEUE in job["metadata"].get("labels", {}) and not is_elastic(job):
            raise KubeError("Kueue would restart all pods: its feature gate ElasticJobsViaWorkloadSlices is off")
        return self._change(job, {}, {"completions": size, "parallelism": size})

    def empty(self, job: dict[str, Any], most: int) -> dict[str, Any]:
        """Remove all pods of the Job of a group, and return it. Raises KubeError as `resize` does.

        A Job of no pods has a parallelism of 0, and one completion more than its ``most`` pods: so no manifest of
        another size can be applied to it, nor its manifest to the Job of another size. The Job is suspended between
        the two changes, so no pod starts for the completions. One that Kueue holds stays so until Kueue starts it.
        """
        count = most + 1

        def change(job: dict[str, Any]) -> dict[str, Any]:
            if not is_emptying(job, most):
                job = self._change(job, {}, {"suspend": True, "completions": count, "parallelism": count})
            return self._change(job, {}, {"suspend": is_held(job), "parallelism": 0})

        return self._again(change, job)

    def _again(self, change: Callable[[dict[str, Any]], dict[str, Any]], job: dict[str, Any]) -> dict[str, Any]:
        """Change the Job, again if its controller may have changed it at the same time. Raises KubeError."""
        for _ in range(PATCH_TRIES - 1):
            try:
                return change(job)
            except KubeError:  # noqa: PERF203 - each try is a request
                job = self.get_job()
        return change(job)

    def suspend(self, job: Mapping[str, Any], size: int, annotations: Mapping[str, str]) -> dict[str, Any]:
        """Suspend the Job, and return it; ``size`` is for when it is resumed. Raises KubeError as `resize` does."""
        return self._change(job, annotations, {"suspend": True, "completions": size, "parallelism": size})

    def resume(self, job: Mapping[str, Any], annotations: Mapping[str, None]) -> dict[str, Any]:
        """Resume the Job without some annotations, and return it. Raises KubeError as `resize` does."""
        return self._change(job, annotations, {"suspend": False})

    def _change(
        self, job: Mapping[str, Any], annotations: Mapping[str, str | None], spec: Mapping[str, Any]
    ) -> dict[str, Any]:
        metadata = {"annotations": annotations} if annotations else {}
        try:
            after = self._patch(self.job, job, {"metadata": metadata, "spec": spec})
        except KubeError as error:
            if GANG in str(error):
                why = "Kubernetes made a gang of the Job, which fixes its size: see docs/how-to/start-as-a-gang.md"
                raise KubeError(why) from None
            raise
        # the Job has changed even if this fails; the next period tries again
        with contextlib.suppress(KubeError):
            after = self.drop_field_ownership(after)
        return after

    def drop_field_ownership(self, job: dict[str, Any]) -> dict[str, Any]:
        """Remove the agent from the Job's managedFields, and return the Job. Raises KubeError.

        Otherwise an upgrade by Helm 4 would conflict with the agent's size. It may take a few tries: the Job's
        controller reacts to a new size with a change of its own, which can come first.
        """

        def change(job: dict[str, Any]) -> dict[str, Any]:
            fields = [entry for entry in job["metadata"]["managedFields"] if entry["manager"] != MANAGER]
            is_clean = len(fields) == len(job["metadata"]["managedFields"])
            return job if is_clean else self._patch(self.job, job, {"metadata": {"managedFields": fields}})

        return self._again(change, job)

    def _patch(self, path: str, before: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
        """Change an object, and return it. Raises KubeError, also if others have changed it since it was read."""
        version = {"resourceVersion": before["metadata"]["resourceVersion"]}
        change = {**change, "metadata": {**version, **change.get("metadata", {})}}
        return dict(self.call("PATCH", f"{path}?fieldManager={MANAGER}", change, "application/merge-patch+json"))

    def get_deployment(self) -> dict[str, Any]:
        """Return the Deployment of the Job's name. Raises KubeError."""
        return self._get(self.deployment)

    def set_replicas(self, deployment: Mapping[str, Any], replicas: int, annotations: Mapping[str, str]) -> None:
        """Change the replicas. Raises KubeError, also if others have changed the Deployment since."""
        change = {"metadata": {"annotations": annotations}, "spec": {"replicas": replicas}}
        self._patch(self.deployment, deployment, change)

    def get_budget(self) -> dict[str, Any]:
        """Return the PodDisruptionBudget of the Job's name. Raises KubeError."""
        return self._get(self.budget)

    def select(self, budget: Mapping[str, Any], selector: Mapping[str, Any] | None) -> None:
        """Change which pods the PodDisruptionBudget selects. Raises KubeError, also if others have changed it since."""
        self._patch(self.budget, budget, {"spec": {"selector": selector}})

    def event(self, job: Mapping[str, Any], reason: str, message: str) -> None:
        """Record an event of the Job. Raises KubeError."""
        now = strftime("%Y-%m-%dT%H:%M:%SZ", gmtime())
        about = {"kind": "Job", "apiVersion": "batch/v1", "name": self.name, "namespace": self.namespace}
        body = {
            "metadata": {"generateName": f"{self.name}-", "namespace": self.namespace},
            "involvedObject": {**about, "uid": job["metadata"]["uid"]},
            "reason": reason,
            "message": message,
            "type": "Normal",
            "source": {"component": MANAGER},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        self.call("POST", f"/api/v1/namespaces/{self.namespace}/events", body)

    def pods(self) -> list[dict[str, Any]]:
        """Return the pods of the Job. Raises KubeError."""
        return list(self._get(f"/api/v1/namespaces/{self.namespace}/pods{self._selector}")["items"])

    def cpu(self, container: str, ready: int) -> float:
        """Return the CPU that the brokers' containers use, in cores. Needs a metrics API.

        Raises KubeError, also while some of those that are ready are not measured.
        """
        path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{self.namespace}/pods"
        containers = (each for pod in self._get(path + self._selector)["items"] for each in pod["containers"])
        used = [parse_cpu(each["usage"]["cpu"]) for each in containers if each["name"] == container]
        if len(used) < max(ready, 1):
            raise KubeError(f"GET {path}: {len(used)} of {max(ready, 1)} pods are measured")
        return sum(used)


def server() -> str:
    """Return the URL of the API server, from the pod's environment."""
    host = os.environ["KUBERNETES_SERVICE_HOST"]
    return f"https://{f'[{host}]' if ':' in host else host}:{os.environ['KUBERNETES_SERVICE_PORT']}"


def parse_cpu(quantity: str) -> float:
    """Return a CPU quantity as cores, e.g. ``250m``."""
    scale = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3}.get(quantity[-1:])
    return float(quantity) if scale is None else float(quantity[:-1]) * scale


def _message(error: urllib.error.HTTPError) -> str:
    """Return the API server's message of an error, on one line."""
    try:
        return " ".join(str(json.load(error)["message"]).split())
    except (ValueError, KeyError, TypeError, OSError, http.client.HTTPException):
        return str(error.reason)
