"""A flux-operator MiniCluster as values of the chart.

The names are the same; what differs is what flux-operator made of them (its API v1alpha2 at commit 0d75cef8,
v1alpha1 at 76c4754f: types, controllers/flux and pkg/flux). The values run what it ran: its defaults are
written out where the chart has others, and what it overrode is dropped. Each of that is said: in a warning,
or at the head of the file where nothing is to be done. docs/migrating.md lists it all.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from minicluster import yamlio
from minicluster.errors import MiniClusterError, SpecError
from minicluster.render import config, resources
from minicluster.render.load import load

GROUP = "flux-framework.org"
VERSIONS = ("v1alpha1", "v1alpha2")
IMAGE = "ghcr.io/rse-ops/accounting:app-latest"
#: Helm's longest release name; a MiniCluster's may have 63 characters.
MAX_RELEASE = 53

Map = dict[str, Any]


class ConvertError(MiniClusterError):
    """A MiniCluster of flux-operator can't be carried over."""


@dataclass(frozen=True)
class Values:
    """A values file, and what its reader must know."""

    name: str
    text: str
    warnings: list[str]


@dataclass
class _Report:
    """What was found on the way: warnings for the person, notes for the head of the file."""

    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def warn(self, place: str, text: str) -> None:
        """Say what is not as it was."""
        self.warnings.append(f"{place} {text}")

    def note(self, text: str) -> None:
        """Say what was written out so that it stays as it was."""
        self.notes.append(text)


def convert(data: bytes) -> tuple[list[Values], list[str]]:
    """Return the values of each MiniCluster in a stream, and warnings about the rest of it.

    Raises MiniClusterError for what can't be carried over.
    """
    try:
        documents = [d for chunk in yamlio.load_all(data) for d in _items(chunk)]
    except yaml.YAMLError as error:
        raise ConvertError(f"the file is not YAML: {yamlio.problem(error)}") from None
    clusters = [d for d in documents if _is_cluster(d)]
    if not clusters:
        raise ConvertError(f"there is no MiniCluster of {GROUP} in the file: give the one for flux-operator")
    others = [f"{_title(d)} is no MiniCluster: apply it as before" for d in documents if not _is_cluster(d)]
    values = [_cluster(document) for document in clusters]
    names = [v.name for v in values]
    for name in names:
        if names.count(name) > 1:
            raise ConvertError(f"two MiniClusters are named {name}: give each a file of its own")
    return values, others


def _items(document: Any) -> Iterator[Any]:
    """Yield the objects of a document; `kubectl get -o yaml` makes a list of several."""
    if document is None:
        return
    if isinstance(document, dict) and isinstance(document.get("items"), list):
        yield from document["items"]
    else:
        yield document


def _is_cluster(document: Any) -> bool:
    """Tell a MiniCluster of flux-operator from other objects. Raises ConvertError for an unknown version."""
    if not isinstance(document, dict) or document.get("kind") != "MiniCluster":
        return False
    group, _, version = str(document.get("apiVersion")).partition("/")
    if group != GROUP:
        return False
    if version not in VERSIONS:
        raise ConvertError(f"{_title(document)} is of {version or 'no version'}: {' and '.join(VERSIONS)} are known")
    return True


def _title(document: Any) -> str:
    if not isinstance(document, dict):
        return "a document"
    return f"{document.get('kind') or 'an object'} {_map(document, 'metadata').get('name') or 'without a name'}"


def _cluster(document: Map) -> Values:
    metadata, report = _map(document, "metadata"), _Report()
    name, namespace = metadata.get("name"), str(metadata.get("namespace") or "")
    if not name:
        raise ConvertError("a MiniCluster has no metadata.name: give it the one that the release will have")
    values = _fresh(document.get("spec"))
    if not isinstance(values, dict):
        raise ConvertError(f"MiniCluster {name} has no spec: give the whole document")
    if _text(document, "apiVersion").endswith("/v1alpha1"):
        _from_v1alpha1(values, report)
    _volumes_v1alpha1(values, report)
    for step in STEPS:
        step(values, report)
    release = str(name)[:MAX_RELEASE].rstrip("-.")
    if release != name:
        values["nameOverride"] = name
        report.note(f"nameOverride: a release's name has at most {MAX_RELEASE} characters")
    _check(str(name), namespace, values)
    warnings = [f"MiniCluster {name}: {' '.join(warning.split())}" for warning in report.warnings]
    return Values(str(name), _file(release, str(name), namespace, values, report.notes), warnings)


def _check(name: str, namespace: str, values: Map) -> None:
    """Raise the error that the post-renderer would."""
    cluster = load({"metadata": {"name": name, "namespace": namespace}, "spec": values})
    for _ in config.documents(cluster, lambda: (b"0" * 40, b"0" * 40)):
        pass


def _file(release: str, name: str, namespace: str, values: Map, notes: list[str]) -> str:
    where = f" -n {namespace}" if namespace else ""
    head = f"helm install {release} charts/minicluster{where} -f {name}-values.yaml --post-renderer minicluster"
    body = yamlio.dump(values).decode().removeprefix("---\n")
    return "".join(f"# {line}\n" for line in [head, *notes]) + body


def _fresh(value: Any) -> Any:
    """Return a copy without null, which is unset, without aliases, and with texts for keys, as kubectl has them."""
    if isinstance(value, dict):
        return {_key(key): _fresh(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_fresh(item) for item in value]
    return value


def _key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)


def _map(parent: Map, key: str) -> Map:
    """Return the map under a key; an empty one when it is something else, for the schema to refuse."""
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def _at(parent: Map, key: str) -> Map:
    """Return the map under a key, made when it is not there."""
    parent.setdefault(key, {})
    return _map(parent, key)


def _text(parent: Map, key: str) -> str:
    value = parent.get(key)
    return value if isinstance(value, str) else ""


def _containers(values: Map, group: str = "containers") -> list[tuple[str, Map]]:
    """Return the containers with their places."""
    items = values.get(group)
    return [(f"{group}[{n}]", item) for n, item in enumerate(items if isinstance(items, list) else []) if _is_map(item)]


def _is_map(value: Any) -> bool:
    return isinstance(value, dict)


def _is_runner(values: Map, container: Map) -> bool:
    return bool(container.get("runFlux")) or len(_containers(values)) == 1


def _runners(values: Map) -> list[tuple[str, Map]]:
    return [(place, c) for place, c in _containers(values) if _is_runner(values, c)]


def _sidecars(values: Map) -> list[tuple[str, Map]]:
    return [(place, c) for place, c in _containers(values) if not _is_runner(values, c)]


def _rename(place: str, parent: Map, old: str, new: str, report: _Report) -> None:
    """Give a key its other name, in its place."""
    if old not in parent or new in parent:
        return
    items = [(new if key == old else key, value) for key, value in parent.items()]
    parent.clear()
    parent.update(items)
    report.warn(f"{place}.{old}".lstrip("."), f"is called {new} here")


def _drop(place: str, parent: Map, key: str, why: str, report: _Report) -> None:
    """Drop a key, and say why when it was set to something."""
    if parent.pop(key, None):
        report.warn(f"{place}.{key}".lstrip("."), f"is dropped: {why}")


def _no_place(values: Map, report: _Report) -> None:
    """Drop what has no meaning without an operator."""
    one_user = "one user runs everything, the pod's: set pod.securityContext"
    _drop("", values, "users", "there are no accounts, one user runs everything", report)
    _drop("", values, "fluxRestful", "there is no RESTful server: use flux in the pods", report)
    _drop("flux", _map(values, "flux"), "installRoot", "Flux is found in PATH, or in the view", report)
    for place, container in [*_containers(values), *_containers(values, "services")]:
        for key in ("fluxUser", "fluxuser"):
            _drop(place, container, key, one_user, report)
        _drop(f"{place}.commands", _map(container, "commands"), "runFluxAsRoot", one_user, report)


def _aliases(values: Map, report: _Report) -> None:
    """Give fields that flux-operator's documentation spells otherwise the names of its API."""
    for place, container in [*_containers(values), *_containers(values, "services")]:
        commands = _map(container, "commands")
        _rename(f"{place}.commands", commands, "preWorker", "workerPre", report)
        _rename(f"{place}.commands", commands, "preBroker", "brokerPre", report)
    flux = _map(values, "flux")
    if "leadBroker" in flux and not _map(flux, "bursting").get("leadBroker"):
        _at(flux, "bursting")["leadBroker"] = flux.pop("leadBroker")
        report.warn("flux.leadBroker", "is flux.bursting.leadBroker here")
    lead = _map(_map(flux, "bursting"), "leadBroker")
    if "hostlist" in lead:
        flux["bursting"]["hostlist"] = lead.pop("hostlist")
        report.warn("flux.leadBroker.hostlist", "is flux.bursting.hostlist here")


def _capabilities(values: Map, report: _Report) -> None:
    """Take over addCapabilities, v1alpha1's; v1alpha2 has no such field, and its API server dropped it."""
    view = ("flux.container", _map(_map(values, "flux"), "container"))
    for place, container in [*_containers(values), *_containers(values, "services"), view]:
        if _add_capabilities(container):
            report.warn(
                f"{place}.securityContext.addCapabilities",
                "are capabilities.add here: v1alpha2 has no such field, so flux-operator's pods went without",
            )


def _add_capabilities(container: Map) -> bool:
    """Move addCapabilities to where Kubernetes has them, and tell whether there were any."""
    security = _map(container, "securityContext")
    if "addCapabilities" not in security:
        return False
    added = security.pop("addCapabilities")
    known = _at(security, "capabilities").get("add") or []
    both = [*known, *added] if isinstance(known, list) and isinstance(added, list) else added
    _map(security, "capabilities")["add"] = both
    return True


def _zeros(values: Map, report: _Report) -> None:
    """Drop zeros that flux-operator takes for unset."""
    for key in ("maxSize", "minSize"):
        _drop_zero(values, key)
    if _drop_zero(values, "backoffLimit"):
        report.warn("backoffLimit", "is 0: flux-operator took it for its 100, kept; say 0 here to have no retries")
    flux = _map(values, "flux")
    if _drop_zero(flux, "logLevel"):
        report.warn("flux.logLevel", "is 0: flux-operator took it for its 6, kept; say 0 here to have no log")
    for key in ("container", "bursting", "scheduler"):
        for name in [name for name, value in _map(flux, key).items() if value in ("", [], {})]:
            del flux[key][name]
    _drop_zero(flux, "submitCommand")
    bursts = _map(flux, "bursting").get("clusters")
    for burst in bursts if isinstance(bursts, list) else []:
        for key in ("name", "size") if _is_map(burst) else ():
            _drop_zero(burst, key)
    for _, container in _containers(values):
        _drop_zero(container, "cores")


def _drop_zero(parent: Map, key: str) -> bool:
    value = parent.get(key)
    if value in ("", 0) and not isinstance(value, bool) and key in parent:
        del parent[key]
        return True
    return False


def _defaults(values: Map, report: _Report) -> None:
    """Write out the defaults of flux-operator's that are not the chart's.

    A default of its API holds only when the object around the field is given: without `flux` there is no
    connect timeout.
    """
    if "strict" not in _map(values, "logging"):
        _at(values, "logging")["strict"] = False
        report.note("logging.strict: flux-operator's default is false, the chart's is true")
    if "flux" not in values:
        values["flux"] = {"connectTimeout": ""}
        report.note("flux.connectTimeout: without flux, flux-operator has none; the chart has 5s")
    for place, container in [*_containers(values), *_containers(values, "services")]:
        if not container.get("image"):
            container["image"] = IMAGE
            report.note(f"{place}.image: flux-operator's default, the chart's is ubuntu:noble")
    flux = _map(values, "flux")
    view = _map(flux, "container")
    if flux.get("arch") == "arm" and not view.get("image") and not view.get("disable"):
        report.warn("flux.arch", "is arm: the view image is now the one for arm; flux-operator left it as it was")


def _cluster_fields(values: Map, report: _Report) -> None:
    """Deal with what flux-operator ignores or does otherwise in the pod and the cluster."""
    pod, network = _map(values, "pod"), _map(values, "network")
    if _text(pod, "restartPolicy") not in ("", "Never"):
        report.warn("pod.restartPolicy", "is dropped: a pod that fails is replaced by the Job, up to backoffLimit")
        del pod["restartPolicy"]
    if not pod.get("restartPolicy"):
        pod.pop("restartPolicy", None)
    security = _map(pod, "securityContext")
    ignored = [key for key in security if key != "fsGroup"]
    if ignored:
        report.warn("pod.securityContext", f"holds in full here: flux-operator ignored {', '.join(ignored)}")
    for key in ("labels", "annotations"):
        if pod.get(key) and _containers(values, "services"):
            report.warn(f"pod.{key}", "are on the brokers' pods only here: flux-operator had them on the services' too")
    if network.get("disableAffinity") and pod.get("nodeAffinity"):
        report.warn("pod.nodeAffinity", "holds here: flux-operator ignored it beside network.disableAffinity")
    if values.get("cleanup"):
        report.warn("cleanup", "removes the Job with its pods: the release stays until helm uninstall")
    if _text(_map(values, "archive"), "path"):
        report.warn("archive.path", "is also written here, when the cluster ends: flux-operator only restored from it")


def _flux_fields(values: Map, report: _Report) -> None:
    """Deal with what flux-operator ignores or does otherwise in `flux`."""
    flux = _map(values, "flux")
    scheduler, bursting = _map(flux, "scheduler"), _map(flux, "bursting")
    if flux.get("mungeSecret"):
        report.warn(
            "flux.mungeSecret", "is used here, by the munged that the image must have: flux-operator ignored it"
        )
    if flux.get("wrap"):
        report.warn("flux.wrap", "holds on the workers too: flux-operator wrapped the lead's broker only")
    if _text(_map(flux, "container"), "pythonPath"):
        report.warn("flux.container.pythonPath", "is for Flux's own commands: the jobs have their image's PYTHONPATH")
    if scheduler.get("queuePolicy") == "fcfs" and not scheduler.get("simple"):
        why = "Fluxion's fcfs fails a job whose nodes are not up yet; unset, it is easy"
        _drop("flux.scheduler", scheduler, "queuePolicy", why, report)
    if scheduler.get("simple") and scheduler.get("queuePolicy") not in (None, "fcfs"):
        _drop("flux.scheduler", scheduler, "queuePolicy", "it is Fluxion's, and simple is set", report)
    if _text(flux, "brokerConfig"):
        _drop("flux.scheduler", scheduler, "queuePolicy", "flux.brokerConfig is used as given", report)
        flux["brokerConfig"] = _heredoc("flux.brokerConfig", flux["brokerConfig"], "EOT", report)
    for key in ("optionFlags", "submitCommand"):
        _literal(f"flux.{key}", _text(flux, key), report)
    for key, value in _map(flux, "environment").items():
        _literal(f"flux.environment.{key}", value, report)
    lead = _map(bursting, "leadBroker")
    if lead and not lead.get("address"):
        bursting.pop("leadBroker")
    elif lead and values.get("interactive"):
        _drop("", values, "interactive", "all pods of a cluster that joins another are workers", report)


def _literal(place: str, text: Any, report: _Report) -> None:
    """Warn of a text that flux-operator's shell expanded, and ours leaves alone."""
    if isinstance(text, str) and _expands(text):
        report.warn(place, "has a $ or `: flux-operator's shell expanded it, here it is taken as it stands")


def _runner_fields(values: Map, report: _Report) -> None:
    """Deal with what flux-operator ignores in the container that runs Flux."""
    for place, runner in _runners(values):
        commands = _map(runner, "commands")
        _drop(place, runner, "name", "flux-operator gave this container the cluster's name", report)
        _drop(place, runner, "noWrapEntrypoint", "Flux is this container's entrypoint", report)
        _drop(f"{place}.commands", commands, "servicePre", "flux-operator ran it in the other containers only", report)
        has_work = bool(runner.get("command") or commands.get("script"))
        if has_work and values.get("interactive") and not runner.get("diagnostics"):
            idle = "interactive is true, so flux-operator did not run it; to run it, drop interactive instead"
            for parent, where, key in ((runner, place, "command"), (commands, f"{place}.commands", "script")):
                _drop(where, parent, key, idle, report)
            has_work = False
        for key in ("batch", "launcher") if not has_work and not runner.get("diagnostics") else ():
            _drop(place, runner, key, "there is no command to run", report)
        if not runner.get("batch"):
            _drop(place, runner, "batchRaw", "batch is not set", report)
        _literal(f"{place}.commands.prefix", commands.get("prefix"), report)
        _debug(runner, has_work, values, report)
        _room(place, runner, has_work, values, report)


def _debug(runner: Map, has_work: bool, values: Map, report: _Report) -> None:
    """Write out the flags of logging.debug that the chart leaves away: flux-operator's were `-vvv --quiet`."""
    if not _map(values, "logging").get("debug") or not has_work or runner.get("launcher") or runner.get("diagnostics"):
        return
    flag = "-vvv" if runner.get("batch") else "--quiet"
    flags = _map(values, "flux").get("optionFlags") or ""
    if isinstance(flags, str) and flag not in flags.split():
        _at(values, "flux")["optionFlags"] = f"{flags} {flag}".strip()
        report.note(f"flux.optionFlags: with logging.debug flux-operator gave {flag} too")


def _room(place: str, runner: Map, has_work: bool, values: Map, report: _Report) -> None:
    """Warn of the cores that R states here, unless the work fits; flux-operator's R had all cores of the node."""
    tasks, size = values.get("tasks", 1), values.get("size", 1)
    try:
        cores = resources.cores(runner)
    except (SpecError, AttributeError, TypeError, ValueError):
        return
    if not cores or runner.get("cores") or not isinstance(tasks, int) or not isinstance(size, int):
        return
    lacks = f", too few for {tasks} tasks on {size}" if tasks > size * cores else ""
    # what one submits oneself, from a shell or a script, may need more
    is_one_job = has_work and not runner.get("launcher") and not runner.get("batch")
    if lacks or not is_one_job or _map(values, "flux").get("optionFlags"):
        word = "core" if cores == 1 else "cores"
        report.warn(
            f"{place}.resources",
            f"give a node {cores} {word} here{lacks}: flux-operator counted all of the node's; set {place}.cores",
        )


def _work(values: Map, report: _Report) -> None:
    """Turn the work of the runner into what flux-operator's shell made of it."""
    for place, runner in _runners(values):
        commands, command = _map(runner, "commands"), runner.get("command")
        if _text(commands, "script"):
            script = _heredoc(f"{place}.commands.script", commands["script"], "EOF", report)
            commands["script"] = _interpreter(f"{place}.commands.script", script, report)
        if isinstance(command, str) and command and runner.get("batch"):
            runner["command"] = _batch(place, command, bool(runner.get("batchRaw")), report)
        elif isinstance(command, str) and command:
            runner["command"] = _command(f"{place}.command", command, report)


#: What a `$` or a backtick expands, unless it is escaped.
_EXPANSION = re.compile(r"(?s)\\.|(\$[\w{(@*#?$!-]|`)")
#: What a backslash escapes inside double quotes, and in the text of a heredoc.
_QUOTED_ESCAPE = re.compile(r'\\([$`"\\\n])')
_HEREDOC_ESCAPE = re.compile(r"\\([$`\\])")
_SPAN = re.compile(r"\$\([^()]*\)|\$\{[^}]*\}|`[^`]*`")
#: What a shell does not take as it stands, and flux-operator gave to the program.
_OPERATOR = re.compile(r"[;&|<>()]+|(?<!\S)[#~]|\{[^\s{}]*(?:,|\.\.)[^\s{}]*\}|\\(?=[^$`\"\\\n])")


def _expands(text: str) -> bool:
    return any(match[1] for match in _EXPANSION.finditer(text))


def _command(place: str, text: str, report: _Report) -> str | list[str]:
    """Return the command as flux-operator's shell read it: between double quotes, then split at blanks.

    What is an operator to a shell was a word to the program, so it is one here, in a list. Quotes break the
    command there, so the text stays, for a shell to read as it was meant.
    """
    plain = _SPAN.sub("", _QUOTED_ESCAPE.sub("", text))
    if any(re.search(r"[\s;&|<>()]", part) for part in plain.split('"')[1::2]):
        report.warn(place, "has double quotes, on which flux-operator breaks: here a shell runs it as written")
        return text
    if "'" in plain:
        report.warn(place, "has single quotes, which flux-operator gave to the program: here a shell reads them")
        return text
    operators = " ".join(dict.fromkeys(_OPERATOR.findall(plain)))
    words = operators or ("its lines" if len(plain.strip().splitlines()) > 1 else "")
    pattern = re.search(r"[*?\[]", plain)
    if _expands(text):
        report.warn(place, "has a $ or `: each task expands it here, flux-operator did once, on the lead")
        if words:
            report.warn(place, f"is run by a shell here: to flux-operator {words} were words of the program")
    elif words:
        none = ", without patterns" if pattern else ""
        report.warn(
            place, f"is a list of words now{none}: to flux-operator {words} were words; write a text for a shell"
        )
        return _double_quoted(text).split()
    elif pattern:
        report.warn(place, "has a pattern: each task expands it here, flux-operator did once, on the lead")
    return text


def _double_quoted(text: str) -> str:
    """Return what a shell makes of a text between double quotes, where a quote inside ends them and begins anew."""
    return re.sub(r"\\([$`\"\\\n])|\"", lambda match: (match[1] or "").replace("\n", ""), text)


def _batch(place: str, text: str, raw: bool, report: _Report) -> str:
    """Return the lines of a batch as flux-operator's `echo "…"` wrote them, with their quotes."""
    place_of_command = f"{place}.command"
    if _expands(text):
        report.warn(
            place_of_command, "has a $ or `: the job expands it here, flux-operator did when it wrote the batch"
        )
    if '"' in _QUOTED_ESCAPE.sub("", text):
        report.warn(place_of_command, "has double quotes, which flux-operator lost: here they hold")
    if not raw:
        report.warn(
            f"{place}.batch", "numbers the files of its jobs from 1: flux-operator did from 0, with blank lines"
        )
    return _QUOTED_ESCAPE.sub(lambda match: match[0] if match[1] == "\n" else match[1], text)


def _heredoc(place: str, text: str, end: str, report: _Report) -> str:
    """Return a text as flux-operator's heredoc wrote it, but for what a shell expanded."""
    if _expands(text):
        report.warn(place, "has an unescaped $ or `: flux-operator expanded it before, here it is stored as given")
    if end in text.splitlines():
        report.warn(place, f"has a line {end}: flux-operator's ended there")
    return _HEREDOC_ESCAPE.sub(r"\1", text)


def _interpreter(place: str, script: str, report: _Report) -> str:
    """Return a script that is run by bash, as flux-operator does whatever the first line says."""
    first, newline, rest = script.partition("\n")
    if not first.startswith("#!") or re.fullmatch(r"#! *(/usr)?/bin/(env +)?bash\s*", first):
        return script
    if re.fullmatch(r"#! *(/usr)?/bin/(env +)?(ba|da|a)?sh( .*)?\s*", first):
        report.warn(place, f"begins with #!/bin/bash now: flux-operator ran it so, not with {first}")
        return f"#!/bin/bash{newline}{rest}"
    report.warn(place, f"begins with {first}, which runs it here: flux-operator ran it with bash")
    return script


def _sidecar_fields(values: Map, report: _Report) -> None:
    """Deal with what flux-operator ignores in the other containers."""
    for place, sidecar in _sidecars(values):
        commands = _map(sidecar, "commands")
        for key in ("batch", "batchRaw", "launcher", "logs"):
            _drop(place, sidecar, key, "it is for the container that runs Flux", report)
        for key in ("pre", "brokerPre", "workerPre", "prefix"):
            _drop(
                f"{place}.commands", commands, key, "flux-operator ran it in the container that runs Flux only", report
            )
        _sidecar_command(place, sidecar, commands, report)
        name = _text(sidecar, "name")
        if sidecar.get("ports") and name:
            report.warn(
                f"{place}.ports", f"are ports of the Service CLUSTER-{name} here: flux-operator calls it {name}"
            )


def _sidecar_command(place: str, sidecar: Map, commands: Map, report: _Report) -> None:
    if sidecar.get("noWrapEntrypoint"):
        _drop(place, sidecar, "command", "noWrapEntrypoint is set, the image's entrypoint runs", report)
        for key in list(commands):
            _drop(f"{place}.commands", commands, key, "noWrapEntrypoint is set, the image's entrypoint runs", report)
    elif commands.get("script") and "custom-entrypoint.sh" in _text(sidecar, "command"):
        _drop(place, sidecar, "command", "commands.script is what it runs", report)
        commands["script"] = _heredoc(f"{place}.commands.script", _text(commands, "script"), "EOF", report)
    else:
        _drop(f"{place}.commands", commands, "script", "flux-operator wrote it to a file and did not run it", report)
        if not sidecar.get("command") and any(commands.values()):
            sidecar["command"] = "true"
            report.warn(f"{place}.command", "is true now: flux-operator ran the snippets and nothing else")
        elif not sidecar.get("command"):
            report.warn(place, "has no command: its image's entrypoint runs here, flux-operator ran nothing in it")


def _service_fields(values: Map, report: _Report) -> None:
    """Deal with what flux-operator ignores in services: all but the image's own entrypoint."""
    for place, service in _containers(values, "services"):
        commands = _map(service, "commands")
        _drop(place, service, "command", "flux-operator ran the image's entrypoint in services", report)
        for key in ("init", "servicePre", "post", "script", "prefix"):
            _drop(f"{place}.commands", commands, key, "flux-operator did not run it in services", report)
        for key in ("runFlux", "batch", "batchRaw", "launcher", "logs", "noWrapEntrypoint"):
            _drop(place, service, key, "it is for the containers of the brokers' pods", report)
    if not _containers(values, "services"):
        return
    secrets = [_text(c, "imagePullSecret") for _, c in _containers(values)]
    if any(secrets):
        _at(values, "pod")["imagePullSecrets"] = list(dict.fromkeys(secret for secret in secrets if secret))
        report.note("pod.imagePullSecrets: flux-operator pulls the services with the secrets of the containers")


#: Variables of flux-operator's entrypoint, that a text of the user's may use, and its files.
_VARIABLES = (
    "asFlux|asSudo|brokerOptions|cfg|command|configroot|curvepath|fluxpath|fluxroot|fluxuid|fluxuser|foundroot|"
    "mainHost|pythonversion|software|viewbase|viewbin|viewroot|workdir|STATE_DIR"
)
_USES_VARIABLE = re.compile(rf"\$\{{?({_VARIABLES})\b")
_SETS_VARIABLE = re.compile(rf"(?:^|[;\s])({_VARIABLES})=", re.MULTILINE)
_USES_FILE = re.compile(r"/flux_operator\b|flux-connect\.sh|load-fluxion\.sh|/home/flux-operator|flux-job\.batch")


def _of_the_operator(place: str, text: str) -> list[str]:
    """Return what only flux-operator's pods have, and a text uses, or a snippet sets."""
    sets = _SETS_VARIABLE.findall(text)
    snippet = ".commands." in place and not place.endswith(".script")
    used = [name for name in _USES_VARIABLE.findall(text) if name not in sets]
    return list(dict.fromkeys([*used, *(sets if snippet else []), *_USES_FILE.findall(text)]))


def _texts(values: Map) -> Iterator[tuple[str, str]]:
    """Yield the texts of the user that a shell runs, with their places."""
    for place, container in [*_containers(values), *_containers(values, "services")]:
        command = container.get("command")
        texts = {"command": " ".join(map(str, command)) if isinstance(command, list) else command}
        texts |= {f"commands.{key}": text for key, text in _map(container, "commands").items()}
        yield from ((f"{place}.{key}", text) for key, text in texts.items() if isinstance(text, str))


#: `exit` as a command, with no code or 0.
_EXIT = re.compile(r"(?:^|[;&|{(]|\b(?:then|else|do)\b)[ \t]*exit(?:[ \t]+0)?[ \t]*(?:$|[;&|})#])", re.MULTILINE)
#: What changes the view: its Python's modules, or its files.
_INSTALLS = re.compile(r"\bensurepip\b|\bpip[\d.]*\s+install\b")
_WRITES = r"\b(?:cp|mv|ln|rm|mkdir|touch|tee|tar|install|chmod|chown|rsync)\b[^\n;&|]*\s{0}/|>\s*{0}/"


def _view(values: Map, report: _Report) -> None:
    """Warn of texts that use flux-operator's copy of the view as it was: in a folder of its own, and writable."""
    if _map(_map(values, "flux"), "container").get("disable"):
        return
    mount = re.escape(_text(_map(_map(values, "flux"), "container"), "mountPath") or "/mnt/flux")
    for place, text in _texts(values):
        if re.search(rf"{mount}/software\b", text):
            report.warn(place, "uses the folder software of flux-operator's view: here it is /opt/software")
        view = rf"(?:{mount}/(?:view|software)|/opt/(?:software|views?))"
        if re.search(_WRITES.format(view), text) or (_INSTALLS.search(text) and re.search(rf"{mount}\b", text)):
            report.warn(
                place, "may change the view, which can't be written to here: install into the image, or a folder"
            )


def _exits(values: Map, report: _Report) -> None:
    """Warn of snippets that end the pod, which flux-operator took for a success."""
    for place, text in _texts(values):
        if ".commands." in place and not place.endswith((".script", ".post", ".prefix")) and _EXIT.search(text):
            report.warn(place, "has an exit, which is an error before the work here: end the snippet with return")


def _names_of_the_operator(values: Map, report: _Report) -> None:
    """Warn of texts that use what only flux-operator's pods have."""
    for place, text in _texts(values):
        used = _of_the_operator(place, text)
        if used:
            report.warn(place, f"uses {', '.join(used)}, which flux-operator's pods have and these do not")
        if "flux-service" in text and not _map(values, "network").get("headlessName"):
            _at(values, "network")["headlessName"] = "flux-service"
            report.warn("network.headlessName", f"is flux-service now, the name until 2025 that {place} has")


def _environment(values: Map, report: _Report) -> None:
    """Expand what Kubernetes would: `$$` is `$`. Its `$(NAME)` is not expanded here."""
    for place, container in [*_containers(values), *_containers(values, "services")]:
        environment = _map(container, "environment")
        for key, value in environment.items():
            if not isinstance(value, str):
                continue
            if re.search(r"(?<!\$)(?:\$\$)*\$\([-._a-zA-Z0-9]+\)", value):
                report.warn(f"{place}.environment.{key}", "has $(…): Kubernetes expanded it, here it is as it stands")
            environment[key] = value.replace("$$", "$")


#: Where a volume comes from, the first that is set: flux-operator's order; and what belongs to each.
SOURCES = {
    "csiDriver": ("csiDriverAttributes",),
    "secretName": (),
    "emptyDir": ("emptyDirMedium", "emptyDirSizeLimit"),
    "hostPath": (),
    "configMapName": ("items",),
    "claimName": (),
}
_MOUNT = ("path", "readOnly")
#: Where flux-operator mounts what has emptyDir.
SHM = "/dev/shm"  # noqa: S108


def _volumes(values: Map, report: _Report) -> None:
    """Give each container the volumes that flux-operator mounted in it."""
    for group in ("containers", "services"):
        containers = _containers(values, group)
        for place, container in containers:
            for name, volume in _map(container, "volumes").items():
                if _is_map(volume):
                    _volume(f"{place}.volumes.{name}", volume, report)
        _shared(containers, report)


def _volume(place: str, volume: Map, report: _Report) -> None:
    """Leave of a volume what flux-operator used."""
    source = next((key for key in SOURCES if volume.get(key)), None)
    if source is None:
        return
    if source != "emptyDir" and volume.get("emptyDir"):
        volume["path"] = SHM
    known = {*SOURCES, *(part for parts in SOURCES.values() for part in parts)}
    for key in [key for key in volume if key in known - {source, *SOURCES[source]}]:
        _drop(place, volume, key, f"flux-operator used {source}", report)
    if source == "emptyDir":
        _empty_dir(place, volume, report)


def _empty_dir(place: str, volume: Map, report: _Report) -> None:
    if volume.get("path") != SHM:
        _drop(place, volume, "path", "flux-operator mounts an emptyDir at /dev/shm", report)
    _drop(place, volume, "readOnly", "flux-operator mounts an emptyDir to be written to", report)
    if volume.get("emptyDirMedium") not in (None, "", "memory"):
        _drop(place, volume, "emptyDirMedium", "flux-operator knows memory only, in lower case", report)


def _shared(containers: list[tuple[str, Map]], report: _Report) -> None:
    """Settle volumes of one name: the last container says what it is, the first where it is mounted.

    A container has the mounts of those before it, too.
    """
    last = {name: v for _, c in containers for name, v in _map(c, "volumes").items() if _is_map(v)}
    settled: Map = {}
    for place, container in containers:
        volumes = _map(container, "volumes")
        if not all(map(_is_map, volumes.values())):
            return
        for name, volume in volumes.items():
            _settle(f"{place}.volumes.{name}", volume, settled.get(name) or volume, last[name], report)
        inherited = {name: dict(volume) for name, volume in settled.items() if name not in volumes}
        if inherited:
            _at(container, "volumes").update(inherited)
            names = ", ".join(inherited)
            report.note(f"{place}.volumes: flux-operator mounts {names} here, from the containers before")
        settled |= {name: volume for name, volume in volumes.items() if name not in settled}


def _settle(place: str, volume: Map, first: Map, last: Map, report: _Report) -> None:
    mount = {key: value for key, value in first.items() if key in _MOUNT}
    whole = mount | {key: value for key, value in last.items() if key not in _MOUNT}
    if volume != whole:
        report.warn(place, "is as flux-operator made it: one volume of a name, mounted once")
        volume.clear()
        volume.update(whole)


STEPS: tuple[Callable[[Map, _Report], None], ...] = (
    _no_place,
    _aliases,
    _capabilities,
    _zeros,
    _defaults,
    _cluster_fields,
    _flux_fields,
    _runner_fields,
    _work,
    _sidecar_fields,
    _service_fields,
    _environment,
    _names_of_the_operator,
    _view,
    _exits,
    _volumes,
)


def _from_v1alpha1(values: Map, report: _Report) -> None:
    """Make the older API's spec one of v1alpha2: Flux was in the image then, and its Service had a fixed name."""
    if not _text(_map(values, "network"), "headlessName"):
        _at(values, "network")["headlessName"] = "flux-service"
        report.note("network.headlessName: v1alpha1's default, the chart's is the cluster's name")
    if "logging" in values and "strict" not in _map(values, "logging"):
        _at(values, "logging")["strict"] = True
    if "flux" not in values:
        values["flux"] = {"connectTimeout": ""}
        report.note("flux.connectTimeout: without flux, flux-operator has none; the chart has 5s")
    _at(_at(values, "flux"), "container")["disable"] = True
    report.note("flux.container.disable: with v1alpha1 Flux comes in the application's image")
    for place, container in [*_containers(values), *_containers(values, "services")]:
        _container_v1alpha1(place, container, values, report)
    for place, runner in _runners(values):
        command = _text(runner, "command")
        if command and not re.search("[\"']", command) and not runner.get("batch"):
            # it was an argument there, in which nothing is expanded
            runner["command"] = re.sub(r"([$`\\])", r"\\\1", command)
        if not (command or values.get("interactive") or runner.get("diagnostics")):
            report.warn(place, "has no command: v1alpha1 then ran its RESTful server, here the cluster idles")


def _container_v1alpha1(place: str, container: Map, values: Map, report: _Report) -> None:
    for old, new in (("fluxOptionFlags", "optionFlags"), ("fluxLogLevel", "logLevel")):
        if old in container:
            _at(values, "flux").setdefault(new, container.pop(old))
            report.warn(f"{place}.{old}", f"is flux.{new} here")
    if "preCommand" in container:
        commands = _at(container, "commands")
        commands["pre"] = "\n".join(t for t in (_text(container, "preCommand"), _text(commands, "pre")) if t)
        del container["preCommand"]
        report.warn(f"{place}.preCommand", "is commands.pre here")
    _add_capabilities(container)
    if place.startswith("containers") and not _is_runner(values, container):
        _snippets_v1alpha1(place, container, report)


def _snippets_v1alpha1(place: str, container: Map, report: _Report) -> None:
    commands = _map(container, "commands")
    if not any(commands.values()):
        _drop(place, container, "command", "v1alpha1 ran the image's entrypoint unless commands were set", report)
        container["noWrapEntrypoint"] = True
        return
    texts = [_text(commands, key) for key in ("brokerPre", "workerPre", "pre")]
    if any(texts):
        for key in ("brokerPre", "workerPre", "pre"):
            commands.pop(key, None)
        commands["servicePre"] = "\n".join(text for text in texts if text)
        report.warn(f"{place}.commands", "have pre, brokerPre and workerPre as servicePre here")


def _volumes_v1alpha1(values: Map, report: _Report) -> None:
    """Take over volumes as v1alpha1 had them, also from a document that says it is of v1alpha2.

    Raises ConvertError for what its operator would have made a volume of.
    """
    defined = _map(values, "volumes")
    for place, container in [*_containers(values), *_containers(values, "services")]:
        for name, volume in _map(container, "volumes").items():
            if name in defined and _is_map(volume):
                _of_the_host(f"{place}.volumes.{name}", volume, _map(defined, name), report)
        existing = _map(container, "existingVolumes")
        if existing:
            del container["existingVolumes"]
            _at(container, "volumes").update(existing)
            report.warn(f"{place}.existingVolumes", "are volumes here")
    values.pop("volumes", None)


def _of_the_host(place: str, volume: Map, source: Map, report: _Report) -> None:
    """Give a volume the host's folder that it was defined by."""
    storage = source.get("storageClass", "hostpath")
    if storage != "hostpath":
        raise ConvertError(
            f"{place} is of the storage class {storage}, made by the operator: make a claim of it, and give its name "
            f"as {place}.claimName"
        )
    volume["hostPath"] = source.get("path")
    report.warn(place, "is the host's folder itself: v1alpha1 made a claim and a volume")
