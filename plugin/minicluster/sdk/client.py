"""The SDK's requests to Kubernetes, through the `kubernetes` client; objects are maps, as in JSON."""

import functools
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from kubernetes import client, stream, watch
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from minicluster.cluster.pods import RUNNER
from minicluster.outage import PATIENCE, Outage
from minicluster.sdk import configuration
from minicluster.sdk.channel import LostError, PodChannel, PodSocket
from minicluster.sdk.exceptions import ApiError, WaitTimeoutError

#: Seconds for an answer; seconds that one watch lasts
ANSWER, WATCH = 30.0, 30.0
#: Seconds until an API server that did not answer is asked again
RETRY = 1.0
Object = Mapping[str, Any]


@contextmanager
def errors(what: str, passing: type[ApiError] = ApiError) -> Iterator[None]:
    """Turn errors of the client into ApiError, or into ``passing`` if the object doesn't exist."""
    try:
        yield
    except ApiException as error:
        status, reason = read_error(error)
        if status in (400, 404):
            raise passing(f"{what}: {reason}", 0 if passing is LostError else status) from None
        raise ApiError(f"{what}: {reason}", status) from None
    except (HTTPError, OSError) as error:
        raise ApiError(f"{what}: Kubernetes can't be reached: {error}") from None


def read_error(error: ApiException) -> tuple[int, str]:
    """Return HTTP's status and Kubernetes' message; for a stream both are in the text of the error."""
    text = error.body if isinstance(error.body, str) else str(error.reason)
    handshake = re.search(r"Handshake status (\d+) ([^-+]*)", text)
    status = int(handshake[1]) if handshake else error.status or 0
    message = re.search(r'"message":\s*("(?:[^"\\]|\\.)*")', text)
    if message:
        with suppress(ValueError):
            return status, json.loads(message[1])
    return status, handshake[2].strip() if handshake else str(error.reason or status)


class KubeClient:
    """A namespace of a cluster; "" is the current one of the kubeconfig, or in a pod that of the pod."""

    def __init__(self, context: str, namespace: str) -> None:
        """Read the kubeconfig, or in a pod its service account. Raises ApiError when there is neither."""
        self.context = context
        settings, own = configuration.read(context)
        self.namespace = namespace or own or "default"
        self._api = client.ApiClient(settings)
        self._core, self._batch = client.CoreV1Api(self._api), client.BatchV1Api(self._api)
        self._resources = {
            "job": (self._batch, "job"),
            "pod": (self._core, "pod"),
            "configmap": (self._core, "config_map"),
            "deployment": (client.AppsV1Api(self._api), "deployment"),
        }
        self._settings = settings
        if not settings.verify_ssl:
            configuration.warn_once(str(settings.host))

    def get(self, kind: str, name: str) -> Object | None:
        """Return an object, by kubectl's name of its kind; None when there is none. Raises ApiError."""
        try:
            return self._ask(f"get {kind} {name}", self._call("read", kind), name)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def select(self, kind: str, labels: str) -> Object:
        """Return the list of the objects that have labels; kinds of others as PLURAL.GROUP. Raises ApiError."""
        plural, _, group = kind.partition(".")
        if not group:
            return self._ask(f"list {kind}", self._call("list", kind), label_selector=labels)
        call = client.CustomObjectsApi(self._api).list_namespaced_custom_object
        words = {"group": group, "version": self._version(group), "plural": plural}
        return self._ask(f"list {plural}", call, **words, label_selector=labels)

    def events(self, which: str) -> Object:
        """Return the list of the events that a field selector selects. Raises ApiError."""
        return self._ask("list events", self._core.list_namespaced_event, field_selector=which)

    def _version(self, group: str) -> str:
        """Return the version of a group of kinds that the API server prefers. Raises ApiError."""
        with errors(f"get {group}"):
            groups: Any = client.ApisApi(self._api).get_api_versions(_request_timeout=ANSWER).groups
        for each in groups:
            if each.name == group:
                return str(each.preferred_version.version)
        raise ApiError(f"the API server has no {group}", 404)

    def _call(self, verb: str, kind: str) -> Any:
        api, resource = self._resources[kind.removesuffix("s")]
        return getattr(api, f"{verb}_namespaced_{resource}")

    def patch_job(self, name: str, change: Mapping[str, Any], manager: str) -> Object:
        """Merge a change into a Job, and return it. Raises ApiError."""
        patch = functools.partial(
            self._batch.patch_namespaced_job, _content_type="application/merge-patch+json", field_manager=manager
        )
        return self._ask(f"patch job {name}", patch, name, body=dict(change))

    def _ask(self, what: str, call: Any, *words: str, **options: Any) -> Object:
        with errors(f"{what} in {self.namespace}"):
            answer = call(*words, namespace=self.namespace, _preload_content=False, _request_timeout=ANSWER, **options)
            found: Object = json.loads(answer.data)
        return found

    def job_changes(
        self, name: str, seconds: float | None, stop: threading.Event | None = None, every: float = WATCH
    ) -> Iterator[Object]:
        """Yield a Job at once, whenever it may have changed, and ``every`` so many seconds; {} while there is none.

        Raises WaitTimeoutError when the seconds are over, ApiError when Kubernetes refuses, or can't be reached for too
        long. Ends when ``stop`` is set.
        """
        stop = stop or threading.Event()
        end = None if seconds is None else time.monotonic() + seconds
        outage = Outage()
        while not stop.is_set():
            try:
                job = self.get("job", name)
                outage.end()
                yield job or {}
                version = (job or {"metadata": {}})["metadata"].get("resourceVersion")
                yield from self._watch_job(name, version, end, every)
            except ApiError as error:
                if not (error.is_passing or error.status == 410) or not outage.is_forgiven(PATIENCE):
                    raise
                stop.wait(RETRY)
            if end is not None and time.monotonic() >= end:
                raise WaitTimeoutError(f"{name} in {self.namespace}: gave up after {seconds:g} s")

    def _watch_job(self, name: str, version: str | None, end: float | None, most: float) -> Iterator[Object]:
        """Yield the Job after each change, for a while."""
        seconds = most if end is None else min(most, end - time.monotonic())
        options = {"field_selector": f"metadata.name={name}", "timeout_seconds": max(1, int(seconds))}
        if version:
            options["resource_version"] = version
        with errors(f"watch job {name} in {self.namespace}"):
            events = watch.Watch().stream(
                self._batch.list_namespaced_job, self.namespace, _request_timeout=seconds + ANSWER, **options
            )
            for event in events:
                yield {} if event["type"] == "DELETED" else event["raw_object"]

    def _streams(self) -> client.CoreV1Api:
        """Return a client for one stream: `kubernetes.stream` changes it while it connects."""
        return client.CoreV1Api(client.ApiClient(self._settings))

    def run(self, pod: str, container: str, words: Sequence[str], *, stdin: bool = False) -> PodChannel:
        """Start a command in a container. Raises ApiError; LostError when there is no such pod or container."""
        with errors(f"exec in pod {pod} in {self.namespace}", passing=LostError):
            started = stream.stream(
                self._streams().connect_get_namespaced_pod_exec,
                pod,
                self.namespace,
                container=container,
                command=list(words),
                stdin=stdin,
                stdout=True,
                stderr=True,
                tty=False,
                _preload_content=False,
                binary=True,
            )
        return PodChannel(started.sock)

    def connect(self, pod: str, port: int) -> PodSocket:
        """Return a connection to a port of a pod. Raises ApiError."""
        with errors(f"forward port {port} of pod {pod} in {self.namespace}"):
            forward = stream.portforward(
                self._streams().connect_get_namespaced_pod_portforward, pod, self.namespace, ports=str(port)
            )
        return PodSocket(forward, port)

    def log(self, pod: str, container: str, *, follow: bool) -> Any:
        """Return the response with a container's log, whose lines begin with their times. Raises ApiError."""
        with errors(f"log of pod {pod} in {self.namespace}"):
            return self._core.read_namespaced_pod_log(
                pod, self.namespace, container=container, follow=follow, timestamps=True, _preload_content=False
            )

    def log_tail(self, pod: str, lines: int) -> str:
        """Return the last lines of the log of a pod's default container. Raises ApiError."""
        found = self.get("pod", pod) or {"metadata": {}}
        container = found["metadata"].get("annotations", {}).get(RUNNER)
        with errors(f"log of pod {pod} in {self.namespace}"):
            answer: Any = self._core.read_namespaced_pod_log(
                pod, self.namespace, container=container, tail_lines=lines, _preload_content=False
            )
            return bytes(answer.data).decode(errors="replace")

    def close(self) -> None:
        """Close the unused connections; a later request opens new ones."""
        self._api.rest_client.pool_manager.clear()

    def __str__(self) -> str:
        """Name the namespace, and the context if one was given."""
        return f"namespace {self.namespace}" + (f" of context {self.context}" if self.context else "")
