"""What commands ask helm and kubectl, in one namespace of one Kubernetes cluster."""

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from minicluster.errors import ToolError
from minicluster.release import helm

T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """A namespace of the cluster of a kubeconfig's context; what is empty is the kubeconfig's own choice."""

    context: str = ""
    namespace: str = ""

    def helm(self, *words: str, stdin: str | None = None) -> str:
        """Return what helm prints. Raises ToolError with its message."""
        return _run(helm.program(), [*_option("--kube-context", self.context), *self._namespace], words, stdin)

    def kubectl(self, *words: str, stdin: str | None = None) -> str:
        """Return what kubectl prints. Raises ToolError with its message."""
        return _run("kubectl", [*_option("--context", self.context), *self._namespace], words, stdin)

    def get(self, kind: str, *words: str) -> dict[str, Any]:
        """Return an object or a list of them; nothing when there is none."""
        text = self.kubectl("get", kind, *words, "--ignore-not-found", "-o", "json")
        try:
            found: dict[str, Any] = json.loads(text or "{}")
        except ValueError as error:
            raise ToolError(f"kubectl get {kind} printed no JSON: {error}") from None
        return found

    def pods(self, job: str, index: int | None = None) -> list[dict[str, Any]]:
        """Return the pods of an Indexed Job, or of one of its indexes, that are not about to leave."""
        labels = f"batch.kubernetes.io/job-name={job}"
        if index is not None:
            labels += f",batch.kubernetes.io/job-completion-index={index}"
        pods = self.get("pods", "-l", labels).get("items", [])
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def __str__(self) -> str:
        """Say where this is."""
        namespace = f"namespace {self.namespace}" if self.namespace else "the namespace of the context"
        return namespace + (f" of context {self.context}" if self.context else "")

    @property
    def _namespace(self) -> list[str]:
        return _option("--namespace", self.namespace)


def _option(name: str, value: str) -> list[str]:
    return [f"{name}={value}"] if value else []


def _run(tool: str, options: list[str], words: tuple[str, ...], stdin: str | None) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - words, no shell
            [tool, *options, *words], input=stdin or "", capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise ToolError(f"{tool} can't be run: {error.strerror}; install it, or put it in PATH") from None
    if done.returncode:
        message = helm.problem(done.stderr, done.returncode).removeprefix("error: ")
        raise ToolError(f"{Path(tool).name} {' '.join(words[:2])}: {message}")
    return done.stdout


def until(found: Callable[[], T], seconds: float) -> T:
    """Return the first true value, asking each second; after so many seconds the last value."""
    end = time.monotonic() + seconds
    while not (value := found()) and time.monotonic() < end:
        time.sleep(1)
    return value
