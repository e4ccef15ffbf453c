"""The MiniCluster that a hand-over document describes: validated, with defaults, and its names and paths.

The schema and the defaults are the chart's own files, so that a hand-written document and a values
file mean the same and get the same errors.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from minicluster.errors import SpecError

#: One argument of a program can't be longer (MAX_ARG_STRLEN, execve(2)).
MAX_COMMAND = 131_071

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class MiniCluster:
    """A validated cluster; ``spec`` has every key of the chart's values.yaml."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Mapping[str, Any]
    certificate: str  #: of the live release, "" when there is none

    @property
    def size(self) -> int:
        """Pods at start."""
        return int(self.spec["size"])

    @property
    def max_size(self) -> int:
        """Hosts that the broker configuration registers."""
        return int(self.spec["maxSize"] or self.size)

    @property
    def flux(self) -> Mapping[str, Any]:
        """The ``flux`` part of the spec."""
        flux: Mapping[str, Any] = self.spec["flux"]
        return flux

    @cached_property
    def runner(self) -> Mapping[str, Any]:
        """The container that runs Flux."""
        return next(c for c in self.spec["containers"] if c.get("runFlux", True))

    @property
    def service(self) -> str:
        """Name of the headless Service, part of every host's domain."""
        return str(self.spec["network"]["headlessName"] or self.name)

    @property
    def mount(self) -> str:
        """Where the cluster's files are in the pods."""
        return str(self.flux["container"]["mountPath"])

    @property
    def files(self) -> str:
        """Folder of the ConfigMap in the pods."""
        return f"{self.mount}/minicluster"

    @property
    def state(self) -> str:
        """Folder that a broker writes to, laid out as flux-operator does."""
        return f"{self.mount}/config"


def load(document: Mapping[str, Any]) -> MiniCluster:
    """Return the cluster of a hand-over document.

    Raises SpecError naming the first wrong value.
    """
    metadata = document["metadata"]
    name = metadata.get("name")
    if not isinstance(name, str) or not re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", name):
        raise SpecError(
            f"the name {name!r} is not a DNS label: use a-z, 0-9 and - (nameOverride, or the release's name)"
        )
    spec = _without_null(document.get("spec") or {})
    problem = next(_problems(spec), None)
    if problem:
        raise SpecError(f"MiniCluster {name}: {problem}")
    cluster = MiniCluster(
        name=name,
        namespace=str(metadata.get("namespace") or "default"),
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        spec=_merge(yaml.load(_text("defaults.yaml"), Loader=_LOADER), spec),  # noqa: S506 - a safe loader
        certificate=str(document.get("certificate") or ""),
    )
    refusal = next(_refusals(cluster), None)
    if refusal:
        raise SpecError(f"MiniCluster {name}: {refusal}")
    return cluster


def _text(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _without_null(value: Any) -> Any:
    """Drop keys that are null: unset, as Helm takes them."""
    if isinstance(value, dict):
        return {key: _without_null(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_null(item) for item in value]
    return value


def _merge(base: Any, over: Any) -> Any:
    """Merge maps key by key, as Helm does with values; anything else is replaced."""
    if isinstance(base, dict) and isinstance(over, dict):
        return base | {key: _merge(base.get(key), value) for key, value in over.items()}
    return over


def _problems(spec: Any) -> Iterator[str]:
    """Yield what the schema has against a spec, shallow before deep."""
    from jsonschema import Draft202012Validator, ValidationError, validators  # noqa: PLC0415 - 50 ms

    def pattern(_validator: Any, expression: str, text: Any, _schema: Any) -> Iterator[Any]:
        # Python's $ also matches before a last newline; Helm's, as JSON Schema's, doesn't
        if isinstance(text, str) and not re.search(re.sub(r"\$$", r"\\Z", expression), text):
            yield ValidationError(f"{text!r} does not match {expression!r}")

    schema = json.loads(_text("schema.json"))
    extend: Any = validators.extend
    validator = extend(Draft202012Validator, {"pattern": pattern})(schema)
    for error in sorted(validator.iter_errors(spec), key=lambda e: (len(e.absolute_path), str(e.absolute_path))):
        yield _sentence(error)


def _sentence(error: Any) -> str:
    """Say in one line which value is wrong, how, and what would be right."""
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path).lstrip(".")
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        unknown = next(key for key in error.instance if key not in known)
        near = difflib.get_close_matches(unknown, known, 1, 0)
        where = f"{path}.{unknown}" if path else unknown
        return f"{where} is not a field" + (f"; did you mean {near[0]}?" if near else "")
    shown = _short(error.instance)
    if "propertyNames" in error.absolute_schema_path:
        return f"{path}: {shown} can't be a name here; use letters, digits and _"
    return f"{path or 'the spec'} is {shown}: {_want(error)}"


def _want(error: Any) -> str:  # noqa: PLR0911 - a table
    rule = error.validator_value
    match error.validator:
        case "type":
            return f"must be {' or '.join(t for t in ([rule] if isinstance(rule, str) else rule) if t != 'null')}"
        case "enum":
            return f"must be one of {', '.join(str(value) or '(empty)' for value in rule)}"
        case "minimum":
            return f"must be at least {rule}"
        case "maximum":
            return f"must be at most {rule}"
        case "minLength":
            return "must not be empty"
        case "maxLength":
            return f"must be at most {rule} characters"
        case "minItems" | "maxItems":
            return f"must have at {error.validator[:3].replace('min', 'least').replace('max', 'most')} {rule} item"
        case "required":
            return f"needs {' and '.join(key for key in rule if key not in error.instance)}"
        case "anyOf":
            return "must be a string or a list of strings without control characters"
        case "pattern" if re.search(r"[\x00-\x08\x0b-\x1f\x7f]", error.instance):
            return "control characters are not allowed"
        case "pattern":
            return f"must match {rule}"
    return str(error.message)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _refusals(cluster: MiniCluster) -> Iterator[str]:
    """Yield what no schema can say: values that contradict each other."""
    spec, flux, runner = cluster.spec, cluster.flux, cluster.runner
    size, max_size, min_size = cluster.size, cluster.max_size, spec["minSize"]
    if max_size < size:
        yield f"size is {size}, maxSize {max_size}: lower size, or install with a larger maxSize"
    if min_size is not None and min_size > size:
        yield f"minSize is {min_size}, size {size}: minSize can't be above size; lower minSize"
    last = f"{cluster.name}-{max_size - 1}"
    if len(last) > 63:
        yield f"the last pod would be {last}, {len(last)} characters: 63 are allowed; use a shorter nameOverride"
    commands = runner.get("commands", {})
    if runner.get("command") and commands.get("script"):
        yield "containers[0].command and commands.script are both set: give the one that is the work"
    if spec["interactive"] and (runner.get("command") or commands.get("script")):
        yield "interactive is true and there is a command: an interactive cluster runs none; drop one of them"
    command = runner.get("command")
    if isinstance(command, str) and len(command.encode()) > MAX_COMMAND:
        yield f"containers[0].command is {len(command.encode())} bytes, {MAX_COMMAND} are allowed: use commands.script"
    if flux["scheduler"]["simple"] and flux["scheduler"]["queuePolicy"] not in ("", "fcfs"):
        policy = flux["scheduler"]["queuePolicy"]
        yield f"flux.scheduler.queuePolicy is {policy} and simple is true: sched-simple knows fcfs only"
    if flux["curveCert"] and flux["curveCertSecret"]:
        yield "flux.curveCert and flux.curveCertSecret are both set: give one of them"
    if flux["container"]["disable"] and flux["container"]["mode"] != "auto":
        mode = flux["container"]["mode"]
        yield f"flux.container.disable is true and mode is {mode}: without a view there is no mode; drop it"
    yield from _hidden_by_broker_config(cluster)


def _hidden_by_broker_config(cluster: MiniCluster) -> Iterator[str]:
    """Yield the values that a broker.toml of the user's own would silently override."""
    if not cluster.flux["brokerConfig"]:
        return
    scheduler, network = cluster.flux["scheduler"], cluster.spec["network"]
    computed = {
        "flux.scheduler.queuePolicy": scheduler["queuePolicy"] not in ("", "fcfs"),
        "flux.scheduler.simple": scheduler["simple"],
        "network.interface": network["interface"] != "eth0",
        "network.clusterDomain": network["clusterDomain"] != "cluster.local",
    }
    for name, is_set in computed.items():
        if is_set:
            yield f"{name} and flux.brokerConfig are both set: brokerConfig is used as given; say it there"
