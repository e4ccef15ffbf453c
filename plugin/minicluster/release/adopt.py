"""MiniClusters of flux-operator in the stream of any chart, replaced by what our chart makes of them.

Helm runs once more for each, with our chart and the converted values. With a cluster that Helm also looks up the live
objects, and calls the post-renderer itself: so an upgrade keeps the certificate, and refuses what can't change.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import yaml

from minicluster import kubectl, yamlio
from minicluster.convert import ValuesFile, convert, others
from minicluster.errors import StreamError, ToolError
from minicluster.release import helm
from minicluster.release.caller import Caller
from minicluster.render.stream import KIND, OPERATOR, may_have_others, split

#: An annotation of a MiniCluster: "true" leaves it to flux-operator
KEEP = "minicluster/keep"
#: An annotation of the Job: what runs otherwise than with flux-operator, a line each
CONVERTED = "minicluster/converted"
HOOK = "helm.sh/hook"
_SERVICE = re.compile(rb"^kind:[ \t]*[\"']?Service\b", re.MULTILINE)

Say = Callable[[str], object]


def adopt(data: bytes, caller: Caller, say: Say) -> bytes:
    """Return a stream in which our chart's documents are in place of flux-operator's MiniClusters.

    Without a cluster they have a hand-over document, for the post-renderer. Raises MiniClusterError.
    """
    return b"".join(_chunks(data, caller, say)) if may_have_others(data) else data


def _chunks(data: bytes, caller: Caller, say: Say) -> Iterator[bytes]:
    seen: set[tuple[str, str]] = set()
    services = []
    for chunk in split(data):
        metadata = _metadata(chunk)
        if metadata is None:
            services += [chunk] if _SERVICE.search(chunk) else []
            yield chunk
            continue
        one = convert(chunk)[0][0]
        annotations = metadata.get("annotations") or {}
        if HOOK in annotations:
            raise StreamError(f"MiniCluster {one.name} is a hook of Helm, which can't be a release: drop {HOOK}")
        namespace = one.namespace or caller.namespace
        if (namespace, one.name) in seen:
            raise StreamError(f"two MiniClusters are named {one.name}: give one another name")
        seen.add((namespace, one.name))
        for warning in one.warnings:
            say(f"warning: {warning}")
        for made in split(_template(one, namespace, caller)):
            yield _with_warnings(made, one.warnings)
    for remark in _remarks(services, [name for _, name in seen]):
        say(f"warning: {remark}")


def _remarks(services: Sequence[bytes], names: Sequence[str]) -> Iterator[str]:
    """Yield what to change in Services that select no pods any more."""
    for chunk in services if names else ():
        with suppress(yaml.YAMLError):  # Helm names the template
            yield from filter(None, [others.selector_remark(yamlio.load(chunk), names)])


def _metadata(chunk: bytes) -> Mapping[str, Any] | None:
    """Return the metadata of a MiniCluster that is to be replaced; None for any other document."""
    if not may_have_others(chunk):
        return None
    try:
        document = yamlio.load(chunk)
    except yaml.YAMLError:
        return None  # Helm names the template
    if not isinstance(document, dict) or document.get("kind") != KIND:
        return None
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    is_ours = str(document.get("apiVersion")).partition("/")[0] == OPERATOR
    is_kept = str((metadata.get("annotations") or {}).get(KEEP)).lower() == "true"
    return metadata if is_ours and not is_kept else None


def _template(one: ValuesFile, namespace: str, caller: Caller) -> bytes:
    """Return what `helm template` makes of our chart. Raises ToolError."""
    if not (namespace or caller.pid):
        raise StreamError(
            f"MiniCluster {one.name} has no namespace, and no command of Helm above this one names it: write "
            "`namespace: {{ .Release.Namespace }}` in its metadata"
        )
    values = {**one.values, "nameOverride": one.name}
    cluster = ("--dry-run=server", "--disable-openapi-validation", "--post-renderer=minicluster")
    words = [
        *("template", "--skip-tests", "--no-hooks", "--values=-"),
        *(cluster if caller.has_cluster else ()),
        *(("--is-upgrade",) if caller.is_upgrade else ()),
        *caller.version,
        *caller.groups,
        *("--", caller.release or one.release, str(helm.CHART)),
    ]
    environment = {**caller.environment, **({"HELM_NAMESPACE": namespace} if namespace else {})}
    try:
        done = kubectl.run(
            "helm", words, stdin=yamlio.dump(values).decode(), seconds=kubectl.HELM_SECONDS, env=environment
        )
    except kubectl.CommandError as error:
        raise ToolError(f"MiniCluster {one.name}: {_reason(error, one.name)}") from None
    return done.stdout


def _with_warnings(chunk: bytes, warnings: list[str]) -> bytes:
    """Return a document; a Job gets the warnings as an annotation, for those who see no output of Helm."""
    if not warnings or not re.search(rb"^kind: Job$", chunk, re.MULTILINE):
        return chunk
    job = yamlio.load(chunk)
    job["metadata"]["annotations"][CONVERTED] = "\n".join(warnings)
    return yamlio.dump(job)


def _reason(error: kubectl.CommandError, name: str) -> str:
    """Return why our chart or Helm refused, in the words of a template's `fail` or of the post-renderer, if any."""
    said = re.sub(r"^.*execution error at \([^)]*\): ", "", helm.explain(error), flags=re.DOTALL)
    return said.removeprefix(f"MiniCluster {name}: ")
