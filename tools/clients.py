"""helm, kubectl and other commands, as the tests, the benchmarks and the tools run them; and the one way to wait."""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeVar

T = TypeVar("T")

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "charts" / "minicluster"
#: The programs that `make tools` builds.
BIN = ROOT / ".tools" / "bin"
#: Seconds until a wait has failed, even on a busy machine.
WAIT_SECONDS = 60.0


class ClusterError(RuntimeError):
    """A part of a cluster is missing or has ended; the text says which and why."""


class ProcessError(ClusterError):
    """A command failed; the text has the command and what it wrote to stderr."""


class TooLateError(ClusterError):
    """A wait took too long."""


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def both(self) -> str:
        """Both outputs, as a person sees them."""
        return self.out + self.err


def run(
    *command: object,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    seconds: float = 120,
) -> Done:
    """Run a command, whatever its exit code. Raises ProcessError when it takes too long."""
    words = list(map(str, command))
    try:
        done = subprocess.run(
            words, input=stdin, capture_output=True, text=True, env=env, cwd=cwd, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise ProcessError(f"{shlex.join(words)}: still runs after {seconds:g} s") from None
    return Done(done.returncode, done.stdout, done.stderr)


def output(
    *command: object, stdin: str | None = None, env: Mapping[str, str] | None = None, seconds: float = 120
) -> str:
    """Return what a command prints. Raises ProcessError when it fails."""
    done = run(*command, stdin=stdin, env=env, seconds=seconds)
    if done.code:
        raise ProcessError(f"{shlex.join(map(str, command))}: {(done.err or done.out).strip()}")
    return done.out


def until(condition: Callable[[], T], seconds: float = WAIT_SECONDS, what: str = "", pause: float = 0.05) -> T:
    """Ask again and again, and return the first true value; a ProcessError means "not yet".

    ``pause`` seconds are between two questions, and in a long wait an eighth of it: what is waited for needs the cores.
    Raises TooLateError when there is none after ``seconds``.
    """
    begin = time.monotonic()
    while True:
        why = ""
        try:
            if value := condition():
                return value
        except ProcessError as error:
            why = f": {error}"
        waited = time.monotonic() - begin
        if waited > seconds:
            raise TooLateError(f"{what or 'what was waited for'}: not within {seconds:g} s{why}")
        time.sleep(max(pause, waited / 8))


def run_program(main: Callable[[], None]) -> None:
    """Run a program's main function; a ClusterError becomes a message on stderr and exit code 1."""
    try:
        main()
    except ClusterError as error:
        sys.exit(f"{Path(sys.argv[0]).stem}: {error}")


class KubernetesCluster:
    """A cluster, with the rights of the user in a kubeconfig; ``env`` is the environment of every command."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """Connect to nothing yet; without KUBECONFIG in ``env``, kubectl's default is used."""
        self.env = dict(env)

    def run(self, *command: object, stdin: str | None = None) -> Done:
        """Run any command, whatever its exit code."""
        return run(*command, stdin=stdin, env=self.env)

    def output(self, *command: object, stdin: str | None = None) -> str:
        """Return what any command prints. Raises ProcessError."""
        return output(*command, stdin=stdin, env=self.env)

    def kubectl(self, *args: object, stdin: str | None = None) -> str:
        """Return what kubectl prints. Raises ProcessError."""
        return self.output("kubectl", *args, stdin=stdin)

    def get(self, *args: object) -> Any:
        """Return the JSON of `kubectl get`. Raises ProcessError."""
        return json.loads(self.kubectl("get", *args, "--output=json"))

    def create(self, *objects: Mapping[str, Any]) -> None:
        """Create the objects. Raises ProcessError."""
        items = {"apiVersion": "v1", "kind": "List", "items": objects}
        self.kubectl("create", "--filename=-", stdin=json.dumps(items))

    def wait(self, what: str, ready: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
        """Wait until ready() is true. Raises ClusterError."""
        until(ready, seconds, what)


def values_text(values: object) -> str:
    """Return values as JSON that is valid YAML, which allows no surrogate pairs."""

    def escape(match: re.Match[str]) -> str:
        if match[0] == "\\\\":
            return match[0]
        return f"\\U{ord(json.loads(f'{chr(34)}{match[0]}{chr(34)}')):08x}"

    return re.sub(r"\\\\|\\ud[89ab]..\\ud[c-f]..", escape, json.dumps(values))


@dataclass(frozen=True)
class Helm:
    """One of the two Helms, apart from the user's own settings; without a cluster unless env names one."""

    name: str
    home: Path
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def major(self) -> int:
        """Helm's major version."""
        return 3 if self.name == "helm3" else 4

    @property
    def environment(self) -> dict[str, str]:
        """The environment that it runs in: `minicluster` is in PATH (Helm 3) and a plugin (Helm 4)."""
        return {
            **{key: value for key, value in os.environ.items() if not key.startswith(("HELM_", "KUBE"))},
            "PATH": os.pathsep.join([str(BIN), str(Path(sys.executable).parent), os.environ["PATH"]]),
            "HELM_CACHE_HOME": str(self.home / "cache"),
            "HELM_CONFIG_HOME": str(self.home / "config"),
            "HELM_DATA_HOME": str(self.home / "data"),
            # Helm 3 can't read a plugin of Helm 4
            "HELM_PLUGINS": str(ROOT if self.major == 4 else self.home / "plugins"),
            "KUBECONFIG": str(self.home / "no-cluster"),
            **self.env,
        }

    def with_env(self, **variables: object) -> Self:
        """Return the same Helm with more in its environment."""
        return replace(self, env={**self.env, **{key: str(value) for key, value in variables.items()}})

    def run(self, *args: object, stdin: str | None = None, env: Mapping[str, str] | None = None) -> Done:
        """Run Helm, whatever its exit code; its own time-out is at most five minutes here."""
        return run(self.name, *args, stdin=stdin, env=self.environment | dict(env or {}), cwd=self.home, seconds=330)

    def ok(self, *args: object, stdin: str | None = None, env: Mapping[str, str] | None = None) -> str:
        """Return what Helm prints. Raises ProcessError when it fails."""
        done = self.run(*args, stdin=stdin, env=env)
        if done.code:
            raise ProcessError(f"{shlex.join([self.name, *map(str, args)])}: {done.both}")
        return done.out

    def fails(self, *args: object, stdin: str | None = None, env: Mapping[str, str] | None = None) -> str:
        """Return both outputs of a Helm that must fail. Raises ProcessError when it succeeds."""
        done = self.run(*args, stdin=stdin, env=env)
        if not done.code:
            raise ProcessError(f"{shlex.join([self.name, *map(str, args)])} should have failed: {done.both}")
        return done.both

    def template(self, *args: object, values: object = None, release: str = "flux-sample", chart: Path = CHART) -> str:
        """Return the output of `helm template`, values as a map or as YAML text."""
        text = values if isinstance(values, str) else values_text(values or {})
        return self.ok("template", release, chart, "--namespace", "ns", "--values", "-", *args, stdin=text)
