"""kubectl and Helm, run as commands: bounded in time, and a failure is an error of one line."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import dropwhile, takewhile
from typing import Any

from minicluster import kubeconfig, lines
from minicluster.errors import KubernetesError, ToolError
from minicluster.kubectl_stream import Stream
from minicluster.names import LABEL

#: Seconds that a command has. Helm may download a chart and wait for hooks: 5 minutes is its own default.
KUBECTL_SECONDS = 60.0
GET_SECONDS = 30.0
#: Seconds that a kubectl has at least, even when the deadline is near
SHORTEST = 1.0
HELM_SECONDS = 300.0
#: Lines of kubectl that explain nothing: its log, warnings, and that a command in a pod failed.
NOISE = re.compile(r"[EWI]\d{4} |Warning: |command terminated with exit code|Defaulted container")
INSTALL = {
    "kubectl": "install it, https://kubernetes.io/docs/tasks/tools",
    "helm": "install Helm 3.14 or later, or Helm 4, or set HELM_BIN to its path",
}


class CommandError(ToolError, KubernetesError):
    """A command failed; ``reason`` is the command's own message."""

    def __init__(self, command: str, reason: str) -> None:
        """Make the message of a command, such as `kubectl get pods`, and a reason."""
        super().__init__(f"{command}: {reason}")
        self.reason = reason

    @property
    def is_forbidden(self) -> bool:
        """Whether this user has no right to do that."""
        return re.search(r"\(Forbidden\)|is forbidden:", self.reason) is not None


@dataclass(frozen=True)
class Kubernetes:
    """A context of the kubeconfig and a namespace; an empty one is the kubeconfig's current one."""

    context: str = ""
    namespace: str = ""
    is_apart: bool = False  #: whether a terminal's Ctrl-C doesn't reach the commands, so that they run to their end
    limit: float | None = None  #: seconds that all calls of kubectl have together
    deadline: float | None = None  #: when these are over, by the monotonic clock

    def within(self, seconds: float | None) -> "Kubernetes":
        """Return the same with a deadline, in that many seconds; None sets none."""
        return self if seconds is None else replace(self, limit=seconds, deadline=time.monotonic() + seconds)

    @property
    def is_late(self) -> bool:
        """Whether the deadline is over."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def kubectl(self, *words: str, stdin: str = "", seconds: float = KUBECTL_SECONDS) -> str:
        """Return what kubectl prints. Raises CommandError, and ToolError when it is missing."""
        words = (*_options({"--context": self.context, "--namespace": self.namespace}), *words)
        if self.deadline is not None:
            seconds = max(SHORTEST, min(seconds, self.deadline - time.monotonic()))
        return _text(run("kubectl", words, stdin=stdin, seconds=seconds, apart=self.is_apart).stdout)

    def words(self, *words: str) -> list[str]:
        """Return the command line of a kubectl that the caller starts. Raises ToolError when it is missing."""
        return [_program("kubectl"), *_options({"--context": self.context, "--namespace": self.namespace}), *words]

    def helm(self, *words: str, stdin: str = "", seconds: float = HELM_SECONDS) -> str:
        """Return what Helm prints. Raises CommandError, and ToolError when it is missing."""
        words = (*_options({"--kube-context": self.context, "--namespace": self.namespace}), *words)
        return _text(run("helm", words, stdin=stdin, seconds=seconds, apart=self.is_apart).stdout)

    def get(self, kind: str, *words: str) -> dict[str, Any]:
        """Return an object or a list of them; an empty map when the object doesn't exist. Raises CommandError."""
        answer = ("--ignore-not-found", "--output=json", "--request-timeout=10s")
        text = self.kubectl("get", kind, *words, *answer, seconds=GET_SECONDS)
        # kubectl prints nothing for an empty list, too
        nothing = '{"items": []}' if any(word.startswith("--selector=") for word in words) else "{}"
        try:
            found: dict[str, Any] = json.loads(text or nothing)
        except ValueError as error:
            raise CommandError(f"kubectl get {kind}", f"the answer is not JSON: {error}") from None
        return found

    def select(self, kind: str, labels: str) -> dict[str, Any]:
        """Return the list of the objects that have labels. Raises CommandError."""
        return self.get(kind, f"--selector={labels}")

    def stream(self, *words: str, has_input: bool = False) -> Stream[CommandError]:
        """Start a kubectl whose output is read while it runs. Raises ToolError when it is missing."""
        failure = partial(_failure, "kubectl", words, os.environ)
        return Stream(self.words(*words), failure, has_input=has_input, apart=self.is_apart)

    def pods(self, job: str, index: int | None = None) -> list[dict[str, Any]]:
        """Return the pods of an Indexed Job, or of one of its indexes, without those that are being deleted."""
        of_index = "" if index is None else f",batch.kubernetes.io/job-completion-index={index}"
        pods = self.select("pods", f"batch.kubernetes.io/job-name={job}{of_index}")["items"]
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def __str__(self) -> str:
        """Name the namespace, and the context that was given. Asks kubectl for the name of the current namespace."""
        namespace = self.namespace or self._current_namespace()
        named = f"namespace {namespace}" if namespace else "the current namespace"
        return named + (f" of context {self.context}" if self.context else "")

    def _current_namespace(self) -> str:
        """Return the context's namespace; "" when it isn't known, as in a pod."""
        template = "--output=jsonpath={.contexts[0].context.namespace}"
        try:
            found = self.kubectl("config", "view", "--minify", template, seconds=GET_SECONDS) or "default"
        except ToolError:
            return ""
        return found if re.fullmatch(LABEL, found) else ""


def run(  # noqa: PLR0913 - most have a default
    tool: str,
    words: Sequence[str],
    *,
    stdin: str = "",
    seconds: float,
    apart: bool = False,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run kubectl or Helm to its end, with ``env`` too. Raises CommandError when it fails or is late, or ToolError."""
    env = {**os.environ, **(env or {})}
    try:
        done = subprocess.run(  # noqa: S603 - words, no shell
            [_program(tool, env), *words],
            env=env,
            input=stdin.encode(),
            capture_output=True,
            timeout=seconds,
            check=False,
            start_new_session=apart,
        )
    except subprocess.TimeoutExpired:
        raise CommandError(_name(tool, words), f"no answer within {seconds:g} s") from None
    except OSError as error:
        raise ToolError(f"{tool} can't be run: {error.strerror}: {INSTALL[tool]}") from None
    if done.returncode:
        raise _failure(tool, words, env, done.returncode, done.stderr)
    return done


def _failure(tool: str, words: Sequence[str], environment: Mapping[str, str], code: int, stderr: bytes) -> CommandError:
    """Return the error of a command that has failed."""
    why = kubeconfig.explained(reason(_text(stderr)), environment)
    return CommandError(_name(tool, words), why or f"exit code {code}")


def _name(tool: str, words: Sequence[str]) -> str:
    """Return a tool, its subcommand and the next word, such as `kubectl get pods`."""
    named = list(dropwhile(_is_option, words))[:2]
    return " ".join([tool, *takewhile(lambda word: not _is_option(word), named)])


def _program(tool: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the path of a tool; Helm names itself in HELM_BIN to its plugins. Raises ToolError."""
    named = environment.get("HELM_BIN") if tool == "helm" else None
    found = shutil.which(named or tool)
    if found is None:
        missing = f"HELM_BIN is {named}: there is no such program" if named else f"there is no {tool} in PATH"
        raise ToolError(f"{missing}: {INSTALL[tool]}")
    return found


def reason(stderr: str) -> str:
    """Return a tool's reason for its failure: the text after `Error:`, else the last line that explains something."""
    _, _, error = f"\n{stderr}".partition("\nError: ")
    said = [line for line in lines.split(stderr) if line.strip() and not NOISE.match(line)]
    return error.strip() or (said[-1].removeprefix("error: ") if said else "")


def _is_option(word: str) -> bool:
    return word.startswith("-")


def _options(given: dict[str, str]) -> list[str]:
    return [f"{option}={value}" for option, value in given.items() if value]


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
