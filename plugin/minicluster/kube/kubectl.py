"""The port to Kubernetes by kubectl."""

import json
import os
import re
import selectors
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from minicluster.console import signals
from minicluster.console.lines import Cutter
from minicluster.errors import AwayError, KubernetesError, RefusedError, ToolError
from minicluster.kube import tool
from minicluster.kube.kubectl_stream import Stream, after_event
from minicluster.kube.names import LABEL
from minicluster.kube.pod_port import PodPort
from minicluster.kube.port import ANSWER_SECONDS, WATCH_SECONDS, Channel, KubePort, Object, Sight
from minicluster.kube.tool import CommandError

#: HTTP's status by Kubernetes' reasons for a refusal; without one of them there was no answer that counts
STATUS = {
    "BadRequest": 400,
    "Unauthorized": 401,
    "Forbidden": 403,
    "NotFound": 404,
    "AlreadyExists": 409,
    "Conflict": 409,
    "Invalid": 422,
}
#: That of a refusal that a new token ends: each kubectl reads the kubeconfig, and asks its plugin, anew
UNDECIDED = (0, STATUS["Unauthorized"])
STATUS_TEXT = re.compile(rf"\(({'|'.join(STATUS)})\)")

#: Changes that come within this time of each other are one
SAME_SECONDS = 0.05
#: Until the second look where nothing has changed
SECOND_LOOK_SECONDS = 2.0
#: Until a log that is followed notices that it is to stop
NOTICE_SECONDS = 0.5


@dataclass(frozen=True)
class Kubernetes(KubePort):
    """A context of the kubeconfig and a namespace, through kubectl."""

    def kubectl(self, *words: str, stdin: str = "", seconds: float = tool.KUBECTL_SECONDS) -> str:
        """Return what kubectl prints. Raises CommandError, and ToolError when it is missing."""
        given, seconds = (*self._options, *words), self.request_seconds(seconds)
        return tool.text(tool.run("kubectl", given, stdin=stdin, seconds=seconds, apart=self.is_apart).stdout)

    def words(self, *words: str) -> list[str]:
        """Return the command line of a kubectl that the caller starts. Raises ToolError when it is missing."""
        return [tool.program("kubectl"), *self._options, *words]

    def settled(self) -> Self:
        """Return the same with the names of context and namespace, for when others become the current ones.

        In a pod without a kubeconfig there are none. Raises KubernetesError without context or pod.
        """
        try:
            config = _parsed("config view", self.kubectl("config", "view", "--minify", "--output=json") or "{}")
        except CommandError as error:
            if self.context or not tool.is_pod(os.environ):
                why = tool.unusable(error.reason, os.environ)
                raise RefusedError(f"{why}: check KUBECONFIG and the context", why) from None
            return self
        if not config.get("contexts"):
            return self
        named = config["contexts"][0]
        namespace = self.namespace or named["context"].get("namespace", "default")
        return replace(self, context=named["name"], namespace=namespace, was_current=not self.context)

    @property
    def _options(self) -> list[str]:
        return tool.options({"--context": self.context, "--namespace": self.namespace})

    def get(self, kind: str, *words: str) -> dict[str, Any]:
        """Return an object, or with options a list of them; an empty map when the object doesn't exist."""
        is_list = not words or words[0].startswith("-")
        answer = ("--ignore-not-found", "--output=json", "--request-timeout=10s")
        with _ported():
            text = self.kubectl("get", kind, *words, *answer, seconds=ANSWER_SECONDS)
        # kubectl prints nothing for an empty list, too
        return _parsed(f"get {kind}", text or ('{"items": []}' if is_list else "{}"))

    def select(self, kind: str, labels: str = "", fields: str = "") -> dict[str, Any]:
        """Return the list of the objects that labels and fields select."""
        return self.get(kind, *tool.options({"--selector": labels, "--field-selector": fields}))

    def patch(self, kind: str, name: str, change: Object, manager: str) -> Object | None:
        """Merge a change into an object as a manager, and return it; None when it was changed meanwhile."""
        words = ("--type=merge", f"--field-manager={manager}", f"--patch={json.dumps(change)}")
        try:
            with _ported():
                text = self.kubectl("patch", kind, name, *words, "--output=json", "--show-managed-fields")
        except RefusedError as error:
            if error.status == STATUS["Conflict"]:
                return None
            raise
        return dict(json.loads(text))

    def made(self, what: Object) -> Object:
        """Return an object as Kubernetes would make it; nothing is made."""
        words = ("--dry-run=server", "--output=json", "--filename=-")
        with _ported():
            text = self.kubectl("create", *words, stdin=json.dumps(what), seconds=ANSWER_SECONDS)
        return dict(json.loads(text))

    def sights(self, job: str, labels: str, every: float = WATCH_SECONDS) -> Iterator[Sight]:
        """Yield both at each change that two watches report, until one of them ends."""
        with ExitStack() as stack, selectors.DefaultSelector() as selector:
            for which in (("job", job), ("pods", f"--selector={labels}")):
                stream = self.stream("get", *which, "--watch", "--output=json", "--output-watch-events")
                selector.register(stack.enter_context(closing(stream)), selectors.EVENT_READ, Cutter())
            sight, is_over, begin = self._sight(job, labels), False, time.monotonic()
            while True:
                # a look is due even when no time is left
                is_last = is_over or self.is_late
                yield sight
                if is_last:
                    return
                before = sight
                while before is sight:
                    # what other objects tell, such as events, is looked for more often at first
                    pause = min(every, max(SECOND_LOOK_SECONDS, time.monotonic() - begin))
                    events, is_over = _reported(partial(self._ready, selector), self.left(pause))
                    next_sight = after_event(sight, events) if events and not is_over else None
                    sight = next_sight or self._sight(job, labels)

    def _sight(self, job: str, labels: str) -> Sight:
        return Sight(self.get("job", job), self.select("pods", labels))

    def _ready(self, selector: selectors.BaseSelector, seconds: float) -> list[selectors.SelectorKey]:
        """Return the watches that can be read, within some seconds, and before ``stop`` is set."""
        ready: list[selectors.SelectorKey] = []

        def look(part: float) -> bool:
            ready.extend(key for key, _ in selector.select(part))
            return bool(ready or (self.stop and self.stop.is_set()))

        signals.wait(look, seconds)
        return ready

    def run(self, pod: str, container: str, words: Sequence[str], *, has_input: bool = False) -> Channel:
        """Start a command in a container."""
        stdin = ("--stdin",) if has_input else ()
        return self.stream("exec", pod, f"--container={container}", *stdin, "--", *words, has_input=has_input)

    def forward(self, pod: str, port: int) -> PodPort:
        """Forward a port of this machine to one of a pod."""
        return PodPort(pod, self.stream("port-forward", f"pod/{pod}", f":{port}", "--address=127.0.0.1"))

    def log(
        self, pod: str, container: str = "", *, follow: bool = False, times: bool = False, tail: int | None = None
    ) -> Generator[bytes]:
        """Yield the log of a container."""
        given = {"--container": container, "--tail": "" if tail is None else str(tail)}
        flags = (name for name, is_on in (("--timestamps", times), ("--follow", follow)) if is_on)
        with closing(self.stream("logs", pod, *tool.options(given), *flags)) as output:
            while (is_there := output.wait(None, self.left(NOTICE_SECONDS))) or not self.is_late:
                if is_there:
                    if (data := output.read()) is None:
                        return
                    yield data

    def stream(self, *words: str, has_input: bool = False) -> Stream:
        """Start a kubectl whose output is read while it runs. Raises ToolError when it is missing."""

        def failure(code: int, stderr: bytes) -> KubernetesError:
            return ported(tool.failure("kubectl", words, os.environ, code, stderr))

        return Stream(self.words(*words), failure, has_input=has_input, apart=self.is_apart)

    def pods(self, job: str, index: int | None = None) -> list[dict[str, Any]]:
        """Return the pods of an Indexed Job, or of one of its indexes, without those that are being deleted."""
        of_index = "" if index is None else f",batch.kubernetes.io/job-completion-index={index}"
        pods = self.select("pods", f"batch.kubernetes.io/job-name={job}{of_index}")["items"]
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def __str__(self) -> str:
        """Name the namespace, and the context that was given. Asks kubectl for the name of the current namespace."""
        namespace = self.namespace or self._current_namespace()
        of_context = f" of context {self.asked_context}" if self.asked_context else ""
        return (f"namespace {namespace}" if namespace else "the current namespace") + of_context

    def _current_namespace(self) -> str:
        """Return the context's namespace; "" when it isn't known, as in a pod."""
        template = "--output=jsonpath={.contexts[0].context.namespace}"
        try:
            namespace = self.kubectl("config", "view", "--minify", template, seconds=ANSWER_SECONDS) or "default"
        except ToolError:
            return ""
        return namespace if re.fullmatch(LABEL, namespace) else ""


def ported(error: CommandError) -> KubernetesError:
    """Return a failure of kubectl as an error of the port."""
    said = STATUS_TEXT.search(error.reason)
    status = STATUS["Forbidden"] if error.is_forbidden else STATUS[said[1]] if said else 0
    return (AwayError if status in UNDECIDED else RefusedError)(str(error), error.reason, status)


def _parsed(question: str, text: str) -> dict[str, Any]:
    """Return what kubectl has printed as JSON. Raises AwayError."""
    try:
        return dict(json.loads(text))
    except ValueError as error:
        why = f"the answer is not JSON: {error}"
        raise AwayError(f"kubectl {question}: {why}", why) from None


@contextmanager
def _ported() -> Iterator[None]:
    try:
        yield
    except CommandError as error:
        raise ported(error) from None


def _reported(ready: Callable[[float], list[selectors.SelectorKey]], seconds: float) -> tuple[list[bytes], bool]:
    """Wait for events of the watches that ``ready`` returns; return their lines, and whether a watch has ended.

    One step of a start is several changes, so those that come close together are one.
    """
    reports: list[bytes] = []
    end = time.monotonic() + seconds
    while keys := ready(max(0.0, end - time.monotonic())):
        end = end if reports else time.monotonic() + SAME_SECONDS
        for key in keys:
            if (data := _read(key.fileobj)) is None:
                return reports, True
            reports += key.data.take(data)
    return reports, False


def _read(watch: Any) -> bytes | None:
    """Return what a watch says; None at its end. Raises KubernetesError if it failed, unless its object is gone."""
    try:
        data: bytes | None = watch.read()
    except RefusedError as error:
        if error.status == STATUS["NotFound"]:
            return None
        raise
    return data
