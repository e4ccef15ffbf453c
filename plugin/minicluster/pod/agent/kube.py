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
from typing import Any, Mapping

from kube_job import is_emptying, is_fixed_by_kueue, is_held

TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REQUEST_SECONDS = 10.0
#: Name of the agent in the Job's managedFields
MANAGER = "minicluster-agent"
MERGE = "application/merge-patch+json"
#: Words in the API server's refusal to change the size of a gang
GANG = "gang-scheduled PodGroup"
#: Labels that Kubernetes puts on the pods of an Indexed Job
JOB_NAME, INDEX = "batch.kubernetes.io/job-name", "batch.kubernetes.io/job-completion-index"


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

    def of_group(self, group: str) -> Kube:
        """Return the API server for the Job of a group, "" for the cluster's own."""
        if not group:
            return self
        return Kube(self.server, self.namespace, f"{self.name}-{group}", self.token)

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
            context = ssl.create_default_context(cafile=str(self.token / "ca.crt"))
            handlers.append(urllib.request.HTTPSHandler(context=context))
        return urllib.request.build_opener(*handlers)

    def get_job(self) -> dict[str, Any]:
        """Return the Job. Raises KubeError."""
        job: dict[str, Any] = self.call("GET", self.job)
        return job

    def resize(self, job: Mapping[str, Any], size: int) -> dict[str, Any]:
        """Change the size of the Job, and return it. Raises KubeError, also if others have changed the Job since."""
        if is_fixed_by_kueue(job):
            raise KubeError("Kueue would restart all pods: its feature gate ElasticJobsViaWorkloadSlices is off")
        return self._change(job, {}, {"completions": size, "parallelism": size})

    def empty(self, job: dict[str, Any], most: int) -> dict[str, Any]:
        """Remove all pods of the Job of a group, and return it. Raises KubeError as `resize` does.

        A Job of no pods has a parallelism of 0, and one completion more than its ``most`` pods: so no manifest of
        another size can be applied to it, nor its manifest to the Job of another size. The Job is suspended between
        the two changes, so no pod starts for the completions. One that Kueue holds stays so until Kueue starts it.
        """
        count = most + 1
        for last in (False, False, False, True):
            is_begun = is_emptying(job, most)
            try:
                if not is_begun:
                    job = self._change(job, {}, {"suspend": True, "completions": count, "parallelism": count})
                return self._change(job, {}, {"suspend": is_held(job), "parallelism": 0})
            except KubeError:
                # the Job's controller may have changed it at the same time
                if last:
                    raise
                job = self.get_job()
        raise AssertionError

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
        for last in (False, False, False, True):
            metadata = job["metadata"]
            fields = [entry for entry in metadata["managedFields"] if entry["manager"] != MANAGER]
            if len(fields) == len(metadata["managedFields"]):
                break
            try:
                return self._patch(self.job, job, {"metadata": {"managedFields": fields}})
            except KubeError:
                if last:
                    raise
                job = self.get_job()
        return job

    def _patch(self, path: str, before: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
        """Change an object, and return it. Raises KubeError, also if others have changed it since it was read."""
        version = {"resourceVersion": before["metadata"]["resourceVersion"]}
        change = {**change, "metadata": {**version, **change.get("metadata", {})}}
        after: dict[str, Any] = self.call("PATCH", f"{path}?fieldManager={MANAGER}", change, MERGE)
        return after

    def get_deployment(self) -> dict[str, Any]:
        """Return the Deployment of the Job's name. Raises KubeError."""
        deployment: dict[str, Any] = self.call("GET", self.deployment)
        return deployment

    def set_replicas(self, deployment: Mapping[str, Any], replicas: int, annotations: Mapping[str, str]) -> None:
        """Change the replicas. Raises KubeError, also if others have changed the Deployment since."""
        change = {"metadata": {"annotations": annotations}, "spec": {"replicas": replicas}}
        self._patch(self.deployment, deployment, change)

    def get_budget(self) -> dict[str, Any]:
        """Return the PodDisruptionBudget of the Job's name. Raises KubeError."""
        budget: dict[str, Any] = self.call("GET", self.budget)
        return budget

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
        items: list[dict[str, Any]] = self.call("GET", f"/api/v1/namespaces/{self.namespace}/pods{self._selector}")[
            "items"
        ]
        return items

    @property
    def _selector(self) -> str:
        return "?" + urllib.parse.urlencode({"labelSelector": f"{JOB_NAME}={self.name}"})

    def cpu(self, container: str, ready: int) -> float:
        """Return the CPU that the brokers' containers use, in cores. Needs a metrics API.

        Raises KubeError, also while some of those that are ready are not measured.
        """
        path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{self.namespace}/pods"
        containers = (each for pod in self.call("GET", path + self._selector)["items"] for each in pod["containers"])
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
