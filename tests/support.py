"""What the tiers share: where things are, the two Helms, and streams as Python sees them."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from minicluster import cli

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "charts" / "minicluster"
PACKAGE = ROOT / "plugin" / "minicluster"
BIN = ROOT / ".tools" / "bin"
SEED = b"a seed of the tests, 32 bytes long"
GROUP = "post-renderer-required.add--post-renderer-minicluster"
#: A certificate of nobody's.
PUBLIC = "b" * 39 + "p"
SECRET = "b" * 39 + "s"
CERTIFICATE = f"""#  ZeroMQ CURVE **Secret** Certificate
#  DO NOT DISTRIBUTE

metadata
    name = "given"
curve
    public-key = "{PUBLIC}"
    secret-key = "{SECRET}"
"""


class StringLoader(yaml.SafeLoader):
    """Loads YAML without timestamps, `=` and `<<`, as Helm writes it."""


StringLoader.yaml_implicit_resolvers = {
    first: [(tag, regex) for tag, regex in resolvers if tag.rpartition(":")[2] not in ("timestamp", "value", "merge")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load_all(text: str | bytes) -> list[dict[str, Any]]:
    """Return the documents of a stream that are not empty."""
    return [document for document in yaml.load_all(text, Loader=StringLoader) if document]


def one(text: str | bytes, kind: str, name: str | None = None) -> dict[str, Any]:
    """Return the one object of a kind (and name) in a stream."""
    found = [d for d in load_all(text) if d["kind"] == kind and name in (None, d["metadata"]["name"])]
    assert len(found) == 1, f"{len(found)} {kind} {name or ''} in the stream"
    return found[0]


def by_name(text: str | bytes) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the objects of a stream by kind and name; none occurs twice."""
    documents = load_all(text)
    found = {(d["kind"], d["metadata"]["name"]): d for d in documents}
    assert len(found) == len(documents)
    return found


def values_text(values: object) -> str:
    """Return values as JSON that is YAML too: without pairs of surrogates."""

    def escape(match: re.Match[str]) -> str:
        if match[0] == "\\\\":
            return match[0]
        return f"\\U{ord(json.loads(f'{chr(34)}{match[0]}{chr(34)}')):08x}"

    return re.sub(r"\\\\|\\ud[89ab]..\\ud[c-f]..", escape, json.dumps(values))


class FrontDoor:
    """`minicluster` for click's CliRunner: a command line in this process, errors as a user sees them."""

    name = "minicluster"

    @staticmethod
    def main(args: Sequence[str], **_: object) -> None:
        """Run a command line."""
        cli.run(args)


front_door: Any = FrontDoor()


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def both(self) -> str:
        """All that a person sees."""
        return self.out + self.err


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

    def run(self, *args: object, stdin: str | None = None, env: Mapping[str, str] | None = None) -> Done:
        """Run Helm to its end, whatever that is."""
        done = subprocess.run(
            [BIN / self.name, *map(str, args)],
            input=stdin,
            capture_output=True,
            text=True,
            env=self.environment | dict(env or {}),
            cwd=self.home,
            check=False,
            timeout=120,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def ok(self, *args: object, stdin: str | None = None, env: Mapping[str, str] | None = None) -> str:
        """Return what Helm prints; it must end well."""
        done = self.run(*args, stdin=stdin, env=env)
        assert done.code == 0, done.both
        return done.out

    def fails(self, *args: object, stdin: str | None = None, env: Mapping[str, str] | None = None) -> str:
        """Return all that a person sees of a Helm that must fail."""
        done = self.run(*args, stdin=stdin, env=env)
        assert done.code != 0, done.both
        return done.both

    def template(self, *args: object, values: object = None, release: str = "flux-sample", chart: Path = CHART) -> str:
        """Return the output of `helm template`, values as a map or as YAML text."""
        text = values if isinstance(values, str) else values_text(values or {})
        return self.ok("template", release, chart, "--namespace", "ns", "--values", "-", *args, stdin=text)


def tool(name: str) -> Path | None:
    """Return a tool of `make tools` if it is there."""
    path = BIN / name
    return path if path.exists() else None


def shells() -> list[str]:
    """Return the shells of this machine that images have as /bin/sh, bash first."""
    return [shell for shell in ("bash", "sh", "dash", "busybox") if shutil.which(shell)]


def run_shell(shell: str, script: str, *args: str, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> bytes:
    """Return what a script prints; it must end well."""
    path = shutil.which(shell)
    assert path
    argv = [path, *(["sh"] if shell == "busybox" else []), "-c", script, "sh", *args]
    done = subprocess.run(argv, capture_output=True, env=env, input=stdin, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


def lines_with(text: str, fragment: str) -> list[str]:
    """Return the lines of a text that have a fragment."""
    return [line for line in text.splitlines() if fragment in line]


def as_container_sees(value: str) -> str:
    """Return an `env` value or `args` item after Kubernetes' expansion of $(NAME), none of which is set."""
    return re.sub(r"\$\$|\$\([^)]*\)", lambda match: "$" if match[0] == "$$" else match[0], value)


def deep(base: Any, over: Mapping[str, Any]) -> Any:
    """Return maps merged key by key."""
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = deep(merged[key], value) if both else value
    return merged


def nested(path: Iterable[str], value: Any) -> Any:
    """Return {a: {b: value}} of [a, b]."""
    for key in reversed(list(path)):
        value = {key: value}
    return value
