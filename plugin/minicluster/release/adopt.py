"""MiniClusters of flux-operator and MPIJobs in the stream of any chart, replaced by what our chart makes of them.

Helm runs once more for each, with our chart and the converted values. With a cluster that Helm also looks up the live
objects: so an upgrade keeps the certificate, and refuses what can't change. What the chart hands over goes into the
stream, where all MiniClusters of a release are rendered together.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import yaml

from minicluster.console.streams import Say
from minicluster.convert import (
    ValuesFile,
    convert,
    each_object,
    is_converted,
    is_list,
    other_version,
    selector_remark,
)
from minicluster.documents import map_at, yamlio
from minicluster.errors import StreamError, ToolError
from minicluster.kube import tool
from minicluster.release import helm
from minicluster.release.caller import Caller
from minicluster.render import stream
from minicluster.render.revision import Job, Name, jobs_of, name_of, with_kept, with_sent
from minicluster.render.stream import API_GROUP, INNER, KIND, VERSION_LINE, may_have_others, parse, split

#: An annotation of a MiniCluster or an MPIJob: "true" leaves it to its operator
KEEP_ANNOTATION = "minicluster/keep"
#: An annotation of the Job: what runs otherwise than with flux-operator, a line each
CONVERTED = "minicluster/converted"
HOOK = "helm.sh/hook"
_SERVICE = re.compile(rb"^kind:[ \t]*[\"']?Service\b", re.MULTILINE)


def adopt(data: bytes, caller: Caller, say: Say) -> bytes:
    """Return a stream in which our chart's documents are in place of MiniClusters and MPIJobs.

    They have a hand-over document each, for the post-renderer. Raises MiniClusterError.
    """
    if not may_have_others(data):
        return data
    made = b"".join(_chunks(data, caller, say))
    before = dict(_last_jobs(caller))
    return with_sent(jobs_of(made), before) if before else made


def _last_jobs(caller: Caller) -> Iterator[tuple[Name, Job]]:
    """Yield the Jobs of the last revision by name. Our chart in another release can't look that up."""
    if not (caller.is_upgrade and caller.has_cluster and caller.release):
        return
    words = ("get", "manifest", "--", caller.release)
    with suppress(tool.CommandError):  # there may be none yet
        done = tool.run("helm", words, seconds=tool.HELM_SECONDS, env=caller.environment)
        yield from ((name_of(job), job) for _, job in jobs_of(done.stdout) if job)


def _chunks(data: bytes, caller: Caller, say: Say) -> Iterator[bytes]:
    seen: set[tuple[str, str]] = set()
    services = []
    words: list[str] = []
    for chunk, metadata in _parts(split(data), say):
        if metadata is None:
            services += [chunk] if _SERVICE.search(chunk) else []
            yield chunk
            continue
        one = convert(chunk)[0][0]
        if HOOK in (metadata.get("annotations") or {}):
            raise StreamError(f"{one.title} is a hook of Helm, which can't be a release: drop {HOOK}")
        namespace = one.namespace or caller.namespace
        if (namespace, one.name) in seen:
            raise StreamError(f"two of the MiniClusters and MPIJobs are named {one.name}: rename one")
        seen.add((namespace, one.name))
        for warning in one.warnings:
            say(f"warning: {warning}")
        # asked of Helm once, however many MiniClusters there are
        words = words or list(_cluster_words(caller))
        for made in split(_template(one, namespace, caller, words)):
            yield _with_warnings(_uncovered(made), one.warnings)
    for remark in _remarks(services, [name for _, name in seen]):
        say(f"warning: {remark}")


def cover(data: bytes) -> Iterator[bytes]:
    """Yield the stream of a Helm that was called from here, with its hand-over documents as text in ConfigMaps.

    With a cluster, Helm takes no document of a group that the cluster doesn't have. Jobs that stay are as they are
    live. Raises StreamError, SpecError.
    """
    for chunk in split(with_kept(data)):
        document = parse(chunk)
        if document is None:
            yield stream.release(chunk)[0]
            continue
        document.pop("kept", None)
        metadata = document["metadata"]
        # where Helm 4 notes the template
        annotations = metadata.pop("annotations", {})
        cover = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, "annotations": annotations}}
        yield yamlio.dump({**cover, "data": {API_GROUP: json.dumps(document)}})


def _uncovered(chunk: bytes) -> bytes:
    """Return the hand-over document that a document covers; any other one as it is."""
    if API_GROUP.encode() not in chunk or VERSION_LINE.search(chunk):
        return chunk
    return yamlio.dump(json.loads(yamlio.load(chunk)["data"][API_GROUP]))


def _remarks(services: Sequence[bytes], names: Sequence[str]) -> Iterator[str]:
    """Yield what to change in Services that select no pods any more."""
    for chunk in services if names else ():
        with suppress(yaml.YAMLError):  # Helm names the template
            yield from filter(None, [selector_remark(yamlio.load(chunk, duplicates=True), names)])


def _parts(chunks: Iterable[bytes], say: Say) -> Iterator[tuple[bytes, Mapping[str, Any] | None]]:
    """Yield each document, with its metadata if it is to be replaced.

    A list that has one becomes a document for each of its objects. Raises StreamError for a key that is there twice.
    """
    for chunk in chunks:
        document = _read(chunk) if may_have_others(chunk) else None
        parts = [(one, _metadata(one, say)) for one in each_object(document)]
        names = [f"{one['kind']} {metadata.get('name')}" for one, metadata in parts if metadata is not None]
        if names:
            _check_keys(chunk, names)
        if names and is_list(document):
            yield from ((yamlio.dump(one), metadata) for one, metadata in parts)
        else:
            yield chunk, parts[0][1] if names else None


def _read(chunk: bytes) -> Any:
    """Return a document, in which the last one of equal keys counts; None when it can't be read."""
    try:
        return yamlio.load(chunk, duplicates=True)
    except yaml.YAMLError:
        return None  # Helm names the template


def _check_keys(chunk: bytes, names: Sequence[str]) -> None:
    """Raise StreamError for a document with a key twice. Its lines are counted as the chart renders them."""
    text = re.sub(rb"\A---[^\n]*\n(?:# Source: [^\n]*\n)?", b"", chunk)
    # what Helm 4 adds to a document, alone or to the annotations that there are
    text = re.sub(rb"(?m)^ +annotations:\n +postrenderer\.helm\.sh/[^\n]*\n(?!    )", b"", text)
    text = re.sub(rb"(?m)^ +postrenderer\.helm\.sh/[^\n]*\n", b"", text)
    try:
        yamlio.load(text)
    except yamlio.DuplicateKeyError as error:
        raise StreamError(f"the document of {', '.join(names)} {yamlio.problem(error)}") from None


def _metadata(document: Any, say: Say) -> Mapping[str, Any] | None:
    """Return the metadata of an object that is to be replaced; None for any other."""
    if not is_converted(document):
        return None
    metadata = map_at(document, "metadata")
    if str((metadata.get("annotations") or {}).get(KEEP_ANNOTATION)).lower() == "true":
        return None
    if document["kind"] != KIND and (problem := other_version(document)):
        # another operator's, beside which the chart may well have a MiniCluster
        say(f"warning: {problem}; it stays as it is")
        return None
    return metadata


def _template(one: ValuesFile, namespace: str, caller: Caller, cluster_words: Sequence[str]) -> bytes:
    """Return what `helm template` makes of our chart. Raises ToolError."""
    if not (namespace or caller.pid):
        raise StreamError(
            f"{one.title} has no namespace, and no command of Helm above this one names it: write "
            "`namespace: {{ .Release.Namespace }}` in its metadata"
        )
    values = {**one.values, "nameOverride": one.name}
    words = [
        *("template", "--skip-tests", "--no-hooks", "--values=-"),
        *cluster_words,
        *(("--is-upgrade",) if caller.is_upgrade else ()),
        *caller.version,
        *caller.groups,
        *("--", caller.release or one.release, str(helm.CHART)),
    ]
    environment = {**caller.environment, INNER: "1", **({"HELM_NAMESPACE": namespace} if namespace else {})}
    try:
        done = tool.run("helm", words, stdin=yamlio.dump(values).decode(), seconds=tool.HELM_SECONDS, env=environment)
    except tool.CommandError as error:
        said = helm.explain(error).removeprefix(f"MiniCluster {one.name}: ")
        raise ToolError(f"{one.title}: {said}") from None
    return done.stdout


def _cluster_words(caller: Caller) -> Iterator[str]:
    """Yield the options by which `helm template` knows the cluster, if there is one. Raises ToolError."""
    if not caller.has_cluster:
        return
    yield from ("--dry-run=server", "--disable-openapi-validation", "--post-renderer=minicluster")
    if helm.is_helm_3(caller.environment):
        # without it the live objects are known, but not the version of Kubernetes
        yield "--validate"


def _with_warnings(chunk: bytes, warnings: list[str]) -> bytes:
    """Return a document; a Job gets the warnings as an annotation, for those who see no output of Helm."""
    if not warnings or not re.search(rb"^kind: Job$", chunk, re.MULTILINE):
        return chunk
    job = yamlio.load(chunk)
    job["metadata"]["annotations"][CONVERTED] = "\n".join(warnings)
    return yamlio.dump(job)
