"""Helpers of all tiers: paths, certificates, streams as Python reads them. The Helms are in tools/clients.py."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema_rs
import pytest
import yaml
from minicluster import cli
from minicluster.commands import json_keys

from tools.clients import BIN, CHART, ROOT, Done, Helm, values_text

__all__ = ["BIN", "CHART", "ROOT", "Done", "Helm", "values_text"]

PACKAGE = ROOT / "plugin" / "minicluster"
#: The Python files of what is not a test
SOURCES = sorted(path for folder in ("plugin", "tools", "benchmarks") for path in (ROOT / folder).rglob("*.py"))
SEED = b"a seed of the tests, 32 bytes long"
GROUP = "post-renderer-required.add--post-renderer-minicluster"

#: The values of the chart, by libyaml, in a 20th of the time: each worker reads them before its first test
DEFAULTS: dict[str, Any] = yaml.load((CHART / "values.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
#: Values by which each template makes something
EVERYTHING: dict[str, Any] = {
    "services": [{"name": "db", "command": "a"}],
    "upgrade": {"replace": True},
    "state": {"capacity": "1Gi"},
    "networkPolicy": {"enabled": True},
    "autoscaling": {"enabled": True},
    "metrics": {"enabled": True, "podMonitor": {"enabled": True}},
    "groups": [{"name": "g", "cores": 1}],
    "pod": {"disruptionBudget": True, "resourceClaims": [{"name": "c", "spec": {"devices": {}}}]},
    "gang": {"kind": "coscheduling"},
    "flux": {"bursting": {"expose": {"type": "NodePort"}, "follow": {"bursts": ["b"]}}},
}


def awaiting(version: str) -> str:
    """Return the API version that an object has until the post-renderer gives it this one."""
    return f"{GROUP}/{version.replace('/', '.')}"


#: A certificate that no cluster uses.
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


class StringLoader(yaml.CSafeLoader):
    """Loads YAML without timestamps, `=` and `<<`, as Helm writes it; by libyaml, in a 20th of the time."""


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


def hook_program() -> ModuleType:
    """Return the program of `upgrade.replace`, as `chart_programs` does."""
    return chart_programs("replace_server", "replace_jobs")


def chart_programs(*stems: str) -> ModuleType:
    """Return the last of the chart's own programs as a module, with its `server`; the chart keeps no compiled copy."""
    made = []
    for stem in stems:
        path = CHART / "files" / f"{stem}.py"
        made.append(sys.modules.setdefault(stem, ModuleType(stem)))
        made[-1].__dict__["__file__"] = str(path)
        exec(compile(path.read_bytes(), str(path), "exec"), made[-1].__dict__)
    server, program = (sys.modules.pop(module.__name__) for module in made)
    program.__dict__["server"] = server
    return program


class FrontDoor:
    """`minicluster` for click's CliRunner: a command line in this process, errors as a user sees them."""

    name = "minicluster"

    @staticmethod
    def main(args: Sequence[str], **_: object) -> None:
        """Run a command line."""
        cli.run(args)


front_door: Any = FrontDoor()


class Process(subprocess.Popen[Any]):
    """A process that a failing test doesn't wait for."""

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        """Wait for its end, and bring that about after an error."""
        if kind:
            self.kill()
        super().__exit__(kind, *rest)


def tool(name: str) -> Path | None:
    """Return the path of a tool of `make tools`, or None."""
    path = BIN / name
    return path if path.exists() else None


#: What an image's /bin/sh can be
SHELLS = ("bash", "dash", "busybox")
#: Those of this machine
INSTALLED_SHELLS = [shell for shell in SHELLS if shutil.which(shell)]
#: All of them, for parametrize: without one of them, its tests are skipped
EACH_SHELL = [
    pytest.param(
        shell, marks=pytest.mark.skipif(shell not in INSTALLED_SHELLS, reason=f"{shell} is missing: install it")
    )
    for shell in SHELLS
]


def run_shell(shell: str, script: str, *args: str, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> bytes:
    """Return what a script prints; it must succeed."""
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


def chart_of_others(folder: Path, template: str) -> Path:
    """Write a chart of one template, and return its folder."""
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("{apiVersion: v2, name: other, version: 1.2.3}")
    (folder / "templates" / "all.yaml").write_text(template)
    return folder


def umbrella(folder: Path, *aliases: str) -> Path:
    """Write a chart with an object of its own and ours as a part, by each alias; a value turns each on and off."""
    version = re.search(r"^version: (.*)$", (CHART / "Chart.yaml").read_text(encoding="utf-8"), re.MULTILINE)
    assert version
    parts = [
        {"name": "minicluster", "alias": alias, "version": version[1], "condition": f"{alias}.enabled"}
        for alias in aliases
    ]
    chart_of_others(folder, "{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}\n")
    about = {"apiVersion": "v2", "name": "umbrella", "version": "0.1.0", "dependencies": parts}
    (folder / "Chart.yaml").write_text(json.dumps(about))
    shutil.copytree(CHART, folder / "charts" / "minicluster")
    return folder


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


def as_in_schema(command: str, document: Any) -> Any:
    """Return what `minicluster COMMAND -o json` prints; fail unless it has the keys of its schema, and no others."""
    assert [error.message for error in _strict(command).iter_errors(document)] == []
    return document


@cache
def _strict(command: str) -> jsonschema_rs.Validator:
    schema = json_keys.schema(command)
    return jsonschema_rs.validator_for(_closed({**schema, "required": [*schema["properties"]]}))


def _closed(schema: Any) -> Any:
    """Return a schema whose objects may have no other keys."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: _closed(each) for key, each in schema.items()}
    return inner | {"additionalProperties": False} if isinstance(schema.get("properties"), dict) else inner
