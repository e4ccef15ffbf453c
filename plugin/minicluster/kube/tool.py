"""kubectl and Helm, run as commands: bounded in time, and a failure is an error of one line."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import dropwhile, takewhile
from pathlib import Path

from minicluster.console import lines, signals
from minicluster.errors import ToolError

#: Seconds that a command has. Helm may download a chart and wait for hooks: 5 minutes is its own default.
KUBECTL_SECONDS = 60.0
HELM_SECONDS = 300.0
#: Seconds that a command has to end itself when we are told to end
INTERRUPT_SECONDS = 5.0
#: Lines that explain nothing: warnings, and that a command in a pod failed
NOISE = re.compile(r"Warning: |command terminated with exit code|Defaulted container")
#: The end of standard error where not kubectl has failed, but the command that it runs in a pod
COMMAND_FAILED = re.compile(rb"(\A|\n)command terminated with exit code \d+\n?\Z")
#: A message of Kubernetes' log, such as `E1126 22:44:04.1 …`; one of several lines ends with ` >`
KLOG = re.compile(r"^[EFIW]\d{4} (?:[^\n]*=<\n(?:\t[^\n]*\n)* >|[^\n]*)(?:\n|\Z)", re.MULTILINE)
#: Where kubectl or Helm begins to say why; what a credential plugin says is before it
SAYS_WHY = re.compile(
    r"^(?:[Ee]rror: |Error in configuration: |Error from server|Unable to connect to the server: |"
    r"The connection to the server )",
    re.MULTILINE,
)
#: The line by which they say that there are no credentials; before it is what the plugin says
NO_CREDENTIALS = re.compile(r"^[^\n]*?\b(?=getting credentials: )", re.MULTILINE)
#: Their advice then; the plugin's own hint comes after it
ADVICE = re.compile(r"\nIt looks like you are trying to use a client-go credential plugin .*\nTo learn more .*\n\s+\S+")
#: The lines of Python above its error
TRACEBACK = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t][^\n]*\n)*", re.MULTILINE)
INSTALL = {
    "kubectl": "install it, https://kubernetes.io/docs/tasks/tools",
    "helm": "install Helm 3.14 or later, or Helm 4, or set HELM_BIN to its path",
}

#: What they say then
NO_CLUSTER_TEXT = re.compile(
    r"(?:localhost|127\.0\.0\.1|\[::1\]):8080|context .*(?:not found|does not exist)|locate context|no configuration"
)
#: What kubectl says of one that leaves open which context is meant
NO_CONTEXT_TEXT = re.compile("current-context must exist.*")


class CommandError(ToolError):
    """A command failed; ``reason`` is the command's own message."""

    def __init__(self, command: str, reason: str) -> None:
        """Make the message of a command, such as `kubectl get pods`, and a reason."""
        super().__init__(f"{command}: {reason}")
        self.reason = reason

    @property
    def is_forbidden(self) -> bool:
        """Whether this user has no right to do that."""
        return re.search(r"\(Forbidden\)|is forbidden:", self.reason) is not None


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
        done = _completed([program(tool, env), *words], env, stdin.encode(), seconds, apart=apart)
    except subprocess.TimeoutExpired as late:
        # a credential plugin may wait for somebody who logs in
        said = reason(text(late.stderr or b""))
        raise CommandError(
            _name(tool, words), f"no answer within {seconds:g} s" + (f": {said}" if said else "")
        ) from None
    except OSError as error:
        raise ToolError(f"{tool} can't be run: {error.strerror}: {INSTALL[tool]}") from None
    if done.returncode:
        raise failure(tool, words, env, done.returncode, done.stderr)
    return done


def _completed(
    line: Sequence[str], env: Mapping[str, str], stdin: bytes, seconds: float, *, apart: bool
) -> subprocess.CompletedProcess[bytes]:
    """Run a command line; one that is interrupted may end what it does. Raises TimeoutExpired, OSError."""
    pipe = subprocess.PIPE
    with ExitStack() as stack:
        with signals.held():
            process = stack.enter_context(
                subprocess.Popen(line, env=env, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=apart)  # noqa: S603 - words, no shell
            )
            stack.push(partial(_end_interrupted, process))
        out, err = process.communicate(stdin, seconds)
    return subprocess.CompletedProcess(line, process.returncode, out, err)


def _end_interrupted(process: "subprocess.Popen[bytes]", _: object, error: BaseException | None, __: object) -> None:
    """End a process that is late, or whose caller is interrupted."""
    if error and not isinstance(error, subprocess.TimeoutExpired):
        # a Helm that is killed leaves its release in the middle of a change
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(INTERRUPT_SECONDS)
    if error:
        process.kill()


def failure(tool: str, words: Sequence[str], environment: Mapping[str, str], code: int, stderr: bytes) -> CommandError:
    """Return the error of a command that has failed."""
    why = explained(reason(text(stderr)), environment)
    return CommandError(_name(tool, words), why or f"exit code {code}")


def _name(tool: str, words: Sequence[str]) -> str:
    """Return a tool, its subcommand and the next word, such as `kubectl get pods`."""
    named = list(dropwhile(_is_option, words))[:2]
    return " ".join([tool, *takewhile(lambda word: not _is_option(word), named)])


def program(tool: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the path of a tool; Helm names itself in HELM_BIN to its plugins. Raises ToolError."""
    named = environment.get("HELM_BIN") if tool == "helm" else None
    path = shutil.which(named or tool)
    if path is None:
        missing = f"HELM_BIN is {named}: there is no such program" if named else f"there is no {tool} in PATH"
        raise ToolError(f"{missing}: {INSTALL[tool]}")
    return path


def reason(stderr: str) -> str:
    """Return a tool's reason for its failure: all of its own words, and those of a credential plugin that failed."""
    told = lines.split(TRACEBACK.sub("", KLOG.sub("", stderr)))
    said = "\n".join(line for line in told if line.strip() and not NOISE.match(line))
    if match := NO_CREDENTIALS.search(said):
        # the plugin was asked more than once
        words = dict.fromkeys(lines.split(said[: match.start()]))
        why, feed, more = said[match.end() :].partition("\n")
        return ": ".join(filter(None, (why, ADVICE.sub("", feed + more).strip(), "\n".join(words).rstrip("."))))
    own = SAYS_WHY.search(said)
    return re.sub(r"\A[Ee]rror: ", "", said[own.start() :] if own else said)


def _is_option(word: str) -> bool:
    return word.startswith("-")


def options(given: dict[str, str]) -> list[str]:
    """Return the options that have a value."""
    return [f"{option}={value}" for option, value in given.items() if value]


def text(data: bytes) -> str:
    """Return what a program printed."""
    return data.decode(errors="replace")


def missing(environment: Mapping[str, str]) -> str:
    """Return that there is no file, and where it was looked for; "" when there is one."""
    named = [path for path in environment.get("KUBECONFIG", "").split(os.pathsep) if path]
    default = Path(environment.get("HOME", "/"), ".kube", "config")
    if any(path.exists() for path in map(Path, named or [str(default)])):
        return ""
    if named:
        return f"KUBECONFIG is {os.pathsep.join(named)}: there is no such file"
    return f"there is no kubeconfig: KUBECONFIG is not set, and {default} doesn't exist"


def unusable(reason: str, environment: Mapping[str, str]) -> str:
    """Return why there is no context, by what kubectl says."""
    said = NO_CONTEXT_TEXT.sub("it has no current context", reason)
    return missing(environment) or f"the kubeconfig can't be used: {said}"


def is_pod(environment: Mapping[str, str]) -> bool:
    """Return whether kubectl finds an API server without a kubeconfig, by the service account of a pod."""
    return bool(environment.get("KUBERNETES_SERVICE_HOST") and environment.get("KUBERNETES_SERVICE_PORT"))


def explained(reason: str, environment: Mapping[str, str]) -> str:
    """Return the reason of a failure, or a better one."""
    return (missing(environment) if NO_CLUSTER_TEXT.search(reason) else "") or reason
