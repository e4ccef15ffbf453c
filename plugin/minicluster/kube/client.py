"""The port to Kubernetes by the package `kubernetes`; objects are maps, as in JSON."""

import json
import math
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from kubernetes import client, stream, watch
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from minicluster.errors import AwayError, RefusedError
from minicluster.kube import configuration
from minicluster.kube.channel import PodChannel, PodSocket
from minicluster.kube.port import ANSWER_SECONDS, WATCH_SECONDS, Object, Place, Sight

#: HTTP's status when the watch's version of an object is too old, and of other refusals that don't last
PASSING = (408, 410, 429)
#: The client's class and its word for a kind, by kubectl's name. Only its use imports a class, with a second of models
RESOURCES = {
    "job": ("BatchV1Api", "job"),
    "pod": ("CoreV1Api", "pod"),
    "configmap": ("CoreV1Api", "config_map"),
    "event": ("CoreV1Api", "event"),
    "deployment": ("AppsV1Api", "deployment"),
    "namespace": ("CoreV1Api", "namespace"),
}
#: Groups of kinds that are in no namespace
CLUSTER_GROUPS = ("storage.k8s.io",)
#: Annotation by which kubectl finds a pod's default container
DEFAULT = "kubectl.kubernetes.io/default-container"


@contextmanager
def errors(what: str, passing: Sequence[int] = PASSING) -> Iterator[None]:
    """Turn errors of the client into RefusedError, or AwayError if they pass: with a status of ``passing``, or 5xx."""
    try:
        yield
    except ApiException as error:
        status, reason = read_error(error)
        may_pass = status == 0 or status >= 500 or status in passing
        raise (AwayError if may_pass else RefusedError)(f"{what}: {reason}", reason, status) from None
    except (HTTPError, OSError) as error:
        reason = f"Kubernetes can't be reached: {error}"
        raise AwayError(f"{what}: {reason}", reason) from None


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


@dataclass(frozen=True)
class KubeClient(Place):
    """A namespace of a cluster, through the API server; `connect` makes one."""

    settings: Any = None
    api: Any = None  #: the `kubernetes` client, which all copies share

    @classmethod
    def connect(cls, context: str, namespace: str) -> Self:
        """Read the kubeconfig, or in a pod its service account. Raises RefusedError when there is neither.

        A namespace "" is the current one of the kubeconfig, or in a pod that of the pod.
        """
        settings, own = configuration.read(context)
        if not settings.verify_ssl:
            configuration.warn_once(str(settings.host))
        return cls(context, namespace or own or "default", settings=settings, api=client.ApiClient(settings))

    def get(self, kind: str, name: str) -> Object:
        """Return an object, by kubectl's name of its kind; an empty map when there is none."""
        try:
            return self._ask(f"get {kind} {name}", self._call("read", kind), name)
        except RefusedError as error:
            if error.status == 404:
                return {}
            raise

    def select(self, kind: str, labels: str = "", fields: str = "") -> Object:
        """Return the list of the objects that labels and fields select; kinds of others as PLURAL.GROUP."""
        which = {"label_selector": labels, "field_selector": fields}
        plural, _, group = kind.partition(".")
        if not group:
            return self._ask(f"list {kind}", self._call("list", kind), **which)
        kinds = {"group": group, "version": self._version(group), "plural": plural}
        api = client.CustomObjectsApi(self.api)
        if group in CLUSTER_GROUPS:
            return self._ask(f"list {plural}", api.list_cluster_custom_object, **kinds, **which)
        call, kinds["namespace"] = api.list_namespaced_custom_object, self.namespace
        return self._ask(f"list {plural}", call, **kinds, **which)

    def patch(self, kind: str, name: str, change: Object, manager: str) -> Object | None:
        """Merge a change into an object as a manager, and return it; None when it was changed meanwhile."""
        how = {"_content_type": "application/merge-patch+json", "field_manager": manager}
        try:
            return self._ask(f"patch {kind} {name}", self._call("patch", kind), name, body=dict(change), **how)
        except RefusedError as error:
            if error.status == 409:
                return None
            raise

    def _version(self, group: str) -> str:
        """Return the version of a group of kinds that the API server prefers."""
        with errors(f"get {group}"):
            groups: Any = client.ApisApi(self.api).get_api_versions(_request_timeout=self.request_seconds()).groups
        for each in groups:
            if each.name == group:
                return str(each.preferred_version.version)
        raise RefusedError(f"the API server has no {group}", status=404)

    def _call(self, verb: str, kind: str) -> Any:
        """Return the client's method for one of Kubernetes' own kinds, such as `job` or `jobs`."""
        name = kind.removesuffix("s")
        api, resource = RESOURCES[name]
        of_kind = getattr(client, api)(self.api)
        if name == "namespace":
            return getattr(of_kind, f"{verb}_{resource}")
        return partial(getattr(of_kind, f"{verb}_namespaced_{resource}"), namespace=self.namespace)

    def _ask(self, what: str, call: Any, *words: str, **options: Any) -> Object:
        with errors(f"{what} in {self.namespace}"):
            answer = call(*words, _preload_content=False, _request_timeout=self.request_seconds(), **options)
            found: Object = json.loads(answer.data)
        return found

    def sights(self, job: str, labels: str, every: float = WATCH_SECONDS) -> Iterator[Sight]:
        """Yield both when a Job may have changed; its status has what matters of its pods."""
        yield self._sight(job, labels)
        if self.is_late:
            return
        seconds = self.left(every)
        which = {"field_selector": f"metadata.name={job}", "timeout_seconds": max(1, int(seconds))}
        with errors(f"watch job {job} in {self.namespace}"):
            jobs = client.BatchV1Api(self.api).list_namespaced_job
            timeout = seconds + ANSWER_SECONDS
            # what comes is looked at by the caller: no model is made of it
            watched = watch.Watch(return_type="object")
            with closing(watched.stream(jobs, self.namespace, _request_timeout=timeout, **which)) as events:
                for _ in events:
                    yield self._sight(job, labels)
                    if self.is_late:
                        return

    def _sight(self, job: str, labels: str) -> Sight:
        return Sight(self.get("job", job), self.select("pods", labels))

    def _streams(self) -> Any:
        """Return a client for one stream: `kubernetes.stream` changes it while it connects."""
        return client.CoreV1Api(client.ApiClient(self.settings))

    def run(self, pod: str, container: str, words: Sequence[str], *, has_input: bool = False) -> PodChannel:
        """Start a command in a container. Without such a pod or container that is AwayError: another may come."""
        with errors(f"exec in pod {pod} in {self.namespace}", (*PASSING, 400, 404)):
            started = stream.stream(
                self._streams().connect_get_namespaced_pod_exec,
                pod,
                self.namespace,
                container=container,
                command=list(words),
                stdin=has_input,
                stdout=True,
                stderr=True,
                tty=False,
                _preload_content=False,
                binary=True,
            )
        return PodChannel(started.sock)

    def connect_port(self, pod: str, port: int) -> PodSocket:
        """Return a connection to a port of a pod."""
        with errors(f"forward port {port} of pod {pod} in {self.namespace}"):
            forward = stream.portforward(
                self._streams().connect_get_namespaced_pod_portforward, pod, self.namespace, ports=str(port)
            )
        return PodSocket(forward, port)

    def log(
        self, pod: str, container: str = "", *, follow: bool = False, times: bool = False, tail: int | None = None
    ) -> Generator[bytes]:
        """Yield the log of a container."""
        if not container:
            container = self.get("pod", pod).get("metadata", {}).get("annotations", {}).get(DEFAULT, "")
        which: dict[str, Any] = {"container": container, "tail_lines": tail}
        how: dict[str, Any] = {"follow": follow, "timestamps": times, "_preload_content": False}
        # a log that is followed may be silent for as long as it likes
        silence = self.request_seconds(math.inf) if follow else self.request_seconds()
        timeout = None if math.isinf(silence) else (self.request_seconds(), silence)
        options = {name: value for name, value in {**which, **how}.items() if value not in (None, "")}
        with errors(f"log of pod {pod} in {self.namespace}"):
            call = client.CoreV1Api(self.api).read_namespaced_pod_log
            answer: Any = call(pod, self.namespace, _request_timeout=timeout, **options)
            with closing(answer):
                for part in answer.stream(amt=None, decode_content=False):
                    yield bytes(part)
                    if self.deadline is not None and self.is_late:
                        return

    def close(self) -> None:
        """Close the unused connections; a later request opens new ones."""
        self.api.rest_client.pool_manager.clear()

    def __str__(self) -> str:
        """Name the namespace, and the context if one was given."""
        return f"namespace {self.namespace}" + (f" of context {self.context}" if self.context else "")
