"""The Jobs as the last revision of the release has them, in which an upgrade leaves what is immutable.

The API server completes a Job that Helm sends, and policies of the cluster may add to it: labels, variables, volumes. A
manifest with these additions could not be rolled back: the manifest of the former revision lacks them, and Kubernetes
refuses to take them away.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import lru_cache
from typing import Any

import yaml

from minicluster.documents import yamlio
from minicluster.errors import SpecError
from minicluster.kube.names import CHART_NAME, is_quantity, to_number
from minicluster.render import handover
from minicluster.render.constants import IMMUTABLE
from minicluster.render.handover import Newcomer
from minicluster.render.stream import parse, split
from minicluster.render.upgrade import immutable_fields, with_immutable

Job = Mapping[str, Any]
Name = tuple[str, str]  #: namespace and name of a Job
#: Lists that Kubernetes merges by a key of their items (patchMergeKey in k8s.io/api/core/v1); others it replaces.
MERGE_KEYS = {
    **dict.fromkeys(("containers", "initContainers", "env", "volumes", "imagePullSecrets", "resourceClaims"), "name"),
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
}
#: Maps that Kubernetes replaces as a whole (mapType=atomic).
_WHOLE = {"nodeSelector"}
#: Fields whose values, or whose maps' values, are quantities.
_QUANTITIES = {"limits", "requests", "overhead", "sizeLimit", "storage", "divisor"}
_EMPTY_VALUES: tuple[Any, ...] = (None, "", 0, {}, [])


def jobs_of(stream: bytes) -> Iterator[tuple[bytes, Job | None]]:
    """Yield the documents of a stream, each with the Job of a MiniCluster that it is, or with None."""
    for chunk in split(stream):
        yield chunk, _job(chunk) if IMMUTABLE.encode() in chunk else None


def _job(chunk: bytes) -> Job | None:
    """Return the Job of a MiniCluster that a document is; None for any other, and for what Helm will refuse to read."""
    try:
        document = yamlio.load(chunk)
        is_ours = document["kind"] == "Job" and IMMUTABLE in document["metadata"]["annotations"]
    except (yaml.YAMLError, KeyError, TypeError):
        return None
    return document if is_ours else None


def name_of(job: Job) -> Name:
    """Return namespace and name of a Job."""
    return str(job["metadata"].get("namespace") or "default"), str(job["metadata"]["name"])


@lru_cache(maxsize=4)
def jobs(release: str) -> Mapping[Name, Job]:
    """Return the Jobs in what Helm keeps of a revision, the text of its Secret; none of what can't be read."""
    try:
        packed = base64.b64decode(base64.b64decode(release))
        text = json.loads(zlib.decompress(packed, zlib.MAX_WBITS | 16))["manifest"]  # as gzip has it
        return {name_of(job): job for _, job in jobs_of(text.encode()) if job}
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error, yaml.YAMLError):
        return {}


def with_sent(documents: Iterable[tuple[bytes, Job | None]], before: Mapping[Name, Job]) -> bytes:
    """Return a stream of ``jobs_of`` with its Jobs as ``as_sent`` has them; all else, and a new Job, byte for byte."""
    return b"".join(chunk if job is None else _with_sent(chunk, job, before) for chunk, job in documents)


def _with_sent(chunk: bytes, job: Job, before: Mapping[Name, Job]) -> bytes:
    sent = as_sent(job, before.get(name_of(job)))
    return chunk if sent is job else yamlio.dump(sent)


def as_sent(job: Job, before: Job | None) -> Job:
    """Return a Job, rendered as it is live, with the immutable fields that the last revision has, if they made it.

    One that changes in place has another record of its values.
    """
    sent = immutable_fields(before or {})
    if not before or _record(before) != _record(job) or not covers(immutable_fields(job), sent):
        return job
    return with_immutable(job, sent)


def _record(job: Job) -> str:
    return str(job["metadata"]["annotations"][IMMUTABLE])


def covers(live: Any, sent: Any, field: str = "") -> bool:
    """Tell whether a live value is what was sent and nothing but additions, in maps and in lists with keys."""
    if isinstance(sent, dict) and isinstance(live, dict):
        if field in _WHOLE and sent and sent.keys() != live.keys():
            return False
        inner = field if field in _QUANTITIES else ""
        return all(covers(live.get(key), value, inner or key) for key, value in sent.items())
    if isinstance(sent, list) and isinstance(live, list):
        return _covers_list(live, sent, field)
    if sent == live and isinstance(sent, bool) == isinstance(live, bool):
        return True
    if field in _QUANTITIES and is_quantity(sent) and is_quantity(live):
        return to_number(sent) == to_number(live)
    return sent in _EMPTY_VALUES and live in _EMPTY_VALUES


def _covers_list(live: list[Any], sent: list[Any], field: str) -> bool:
    key = MERGE_KEYS.get(field)
    if not key or not all(isinstance(item, dict) and key in item for item in [*live, *sent]):
        return len(live) == len(sent) and all(map(covers, live, sent))
    by_key = {item[key]: item for item in live}
    return all(item[key] in by_key and covers(by_key[item[key]], item) for item in sent)


#: Fields of a Job's spec, and labels of its pods, that the API server sets. It refuses a new Job that has them.
_SERVER_FIELDS = {"selector", "manualSelector"}
_SERVER_LABELS = {"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}
#: Fields of a pod's spec that a suspended Job may change, beside the resources of containers.
_WHERE = ("nodeSelector", "tolerations", "affinity")


def with_kept(stream: bytes) -> bytes:
    """Return a stream of the chart in which Jobs that stay are as they are live; all else byte for byte.

    Raises SpecError for a text that the chart didn't write, and StreamError.
    """
    documents = [document for chunk in split(stream) if b"kept" in chunk and (document := parse(chunk))]
    kept = {name: job for document in documents for name, job in handover.live_jobs(document).items()}
    return b"".join(chunk for chunk, _ in applied(jobs_of(stream), kept)) if kept else stream


def applied(
    documents: Iterable[tuple[bytes, Job | None]], kept: Mapping[Name, handover.LiveJob]
) -> Iterator[tuple[bytes, Job | None]]:
    """Yield the documents of ``jobs_of`` with the Jobs that stay as they are live; all else as it is."""
    for chunk, job in documents:
        live = kept.get(name_of(job)) if job else None
        if job and live:
            stays = as_kept(job, live)
            yield yamlio.dump(stays), stays
        else:
            yield chunk, job


def as_kept(job: Job, live: handover.LiveJob) -> Job:
    """Return a new Job with the immutable part of the live one."""
    fields = immutable_fields({"spec": live.spec})
    spec = {field: value for field, value in fields.items() if field not in _SERVER_FIELDS}
    spec["template"] = _as_sent(live.spec["template"])
    if live.changes_in_place:
        spec["template"] = _changed(spec["template"], job["spec"]["template"])
    return with_immutable(job, spec)


def _as_sent(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return a live pod template without what the API server has added to its metadata."""
    metadata = {key: value for key, value in (template.get("metadata") or {}).items() if key != "creationTimestamp"}
    labels = {key: text for key, text in (metadata.get("labels") or {}).items() if key not in _SERVER_LABELS}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _changed(live: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return a live pod template in which all that a suspended Job may change is as in the new one."""
    spec = {field: value for field, value in live["spec"].items() if field not in _WHERE}
    spec |= {field: new["spec"][field] for field in _WHERE if field in new["spec"]}
    for kind in ("initContainers", "containers"):
        resources = {one["name"]: one.get("resources") or {} for one in new["spec"].get(kind) or []}
        if kind in spec:
            spec[kind] = [
                {**one, "resources": resources[one["name"]]} if one["name"] in resources else one for one in spec[kind]
            ]
    return {**live, "metadata": new["metadata"], "spec": spec}


def refuse_renamed(newcomers: Iterable[Newcomer], kept: Set[Name]) -> None:
    """Raise SpecError for a newcomer beside which a MiniCluster goes.

    ``kept`` are the Jobs of the upgrade; the namespace "" is that of the release.
    """
    for one in newcomers:
        for name, chart in one.others.items():
            # two aliases are two MiniClusters
            is_another = chart != one.chart and CHART_NAME not in (chart, one.chart)
            if not is_another and kept.isdisjoint({(one.namespace, name), ("", name)}):
                raise SpecError(
                    f"nameOverride can't change on the live MiniCluster {name}: the new name is {one.name}, and the "
                    f"queue of {name} would be lost; keep the name {name}, or install {one.name} as a release of its "
                    f"own. If these are two MiniClusters, remove {name} by one upgrade and add {one.name} by the next"
                )
