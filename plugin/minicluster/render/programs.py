"""The programs of the pods: in a ConfigMap that the MiniClusters of a release share, or in a cluster's own.

Helm keeps a release in one Secret of at most 1 MiB, and the programs are most of what a MiniCluster is made of. The
chart names the ConfigMap, and hands over the files of a live one: an upgrade changes no program that live pods run.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from minicluster import pod
from minicluster.errors import SpecError
from minicluster.render.upgrade import NOT_OF_BROKERS

if TYPE_CHECKING:
    from minicluster.render.model import MiniClusterModel

#: Annotation with the version that the programs are of, by which the chart knows whether a new Job can run them
VERSION = "minicluster/version"
_INSTANCE = "app.kubernetes.io/instance"

Files = Mapping[str, str]
#: Namespace and name of a ConfigMap
Key = tuple[str, str]


class Programs(NamedTuple):
    """The ConfigMap with the programs of a Job's pods."""

    name: str  #: "" for the cluster's own
    version: str
    files: Files  #: those of the live ConfigMap; one document of a release has them


def load(found: object) -> list[Programs]:
    """Return what a hand-over document says of the programs. Raises SpecError for what the chart didn't write."""
    try:
        return [_read(one) for one in list(found)] if isinstance(found, list) else _read_none(found)
    except (binascii.Error, ValueError, KeyError, TypeError, AttributeError):
        raise SpecError("programs is not what the chart writes: leave it out") from None


def _read(one: Mapping[str, Any]) -> Programs:
    files = json.loads(base64.b64decode(one["files"], validate=True)) if "files" in one else {}
    return Programs(str(one["name"]), str(one["version"]), {str(key): str(text) for key, text in files.items()})


def _read_none(found: object) -> list[Programs]:
    if found is not None:
        raise TypeError
    return []


@cache
def of_brokers() -> Files:
    """Return the programs of the brokers' pods and services by file name."""
    return {name: text for name, text in _all().items() if name not in NOT_OF_BROKERS}


@cache
def of_others() -> Files:
    """Return the programs of other pods, which are new with each upgrade. Every cluster has its own."""
    return {name: text for name, text in _all().items() if name in NOT_OF_BROKERS}


@cache
def _all() -> Files:
    return {name: file.read_text(encoding="utf-8") for name, file in pod.programs().items()}


def shared(clusters: Iterable["MiniClusterModel"]) -> dict[Key, Files]:
    """Return the files of each ConfigMap that several clusters share: those of the live one, else this version's."""
    found: dict[Key, Files] = {}
    for cluster in clusters:
        for one in filter(_is_shared, cluster.programs):
            key = (cluster.namespace, one.name)
            found[key] = one.files or found.get(key, of_brokers())
    return found


def _is_shared(one: Programs) -> bool:
    return bool(one.name)


def are_own(cluster: "MiniClusterModel", files: Mapping[Key, Files]) -> bool:
    """Tell whether the programs are in the cluster's own ConfigMap, whose files pods prefer.

    So they are in a document that no chart wrote, for a live Job of an older version, and where a new Job would meet
    live programs that are not those of this version.
    """
    is_new = cluster.installed is None
    names = [one.name for one in cluster.programs]
    fresh = of_brokers()
    others = (files.get((cluster.namespace, name), fresh) for name in names)
    return not names or not all(names) or (is_new and any(each != fresh for each in others))


def documents(cluster: "MiniClusterModel", left: dict[Key, Files]) -> Iterable[dict[str, Any]]:
    """Yield the ConfigMaps of a cluster's programs that no cluster before it had, and take them from ``left``."""
    for one in filter(_is_shared, cluster.programs):
        data = left.pop((cluster.namespace, one.name), None)
        if data is not None:
            metadata = {
                "name": one.name,
                "namespace": cluster.namespace,
                # it is of no single cluster
                "labels": {key: text for key, text in cluster.labels.items() if key != _INSTANCE},
                "annotations": {**cluster.annotations, VERSION: one.version},
            }
            yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}
