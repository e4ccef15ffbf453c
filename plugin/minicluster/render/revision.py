"""The Jobs as the last revision of the release has them, in which an upgrade leaves what is immutable.

The API server completes a Job that Helm sends, and policies of the cluster may add to it: labels, variables, volumes. A
manifest with these additions could not be rolled back: the manifest of the former revision lacks them, and Kubernetes
refuses to take them away.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import yaml

from minicluster.documents import yamlio
from minicluster.render.constants import IMMUTABLE
from minicluster.render.quantity import is_quantity, to_number
from minicluster.render.stream import split
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
    import gzip  # noqa: PLC0415 - 2 ms, which only upgrades need

    try:
        text = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(release))))["manifest"]
        return {name_of(job): job for _, job in jobs_of(text.encode()) if job}
    except (ValueError, KeyError, TypeError, AttributeError, OSError, EOFError, zlib.error, yaml.YAMLError):
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
