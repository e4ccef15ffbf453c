"""The ConfigMaps with programs that the MiniClusters of a release share, or those of a cluster's own.

Helm keeps a release in one Secret of at most 1 MiB, and the programs are most of what a MiniCluster is made of. The
chart names the ConfigMap, and hands over the files of a live one: an upgrade changes no program that live pods run.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from minicluster import pod
from minicluster.render.handover import Programs
from minicluster.render.model import MiniClusterModel
from minicluster.render.stream import INSTANCE
from minicluster.render.upgrade import NOT_OF_BROKERS

#: Annotation with the version that the programs are of, by which the chart knows whether a new Job can run them
VERSION_ANNOTATION = "minicluster/version"
#: How the names of Slurm's commands begin, which are in a ConfigMap of their own, and of others that are there for want
#: of room; a version without the former has but one ConfigMap
SLURM_PREFIX = "slurm"
BESIDE_SLURM = (
    *("end_idle.", "epilog.", "idle_jobs.", "ingest.", "inner_jobs.", "job_gpus.", "job_notes.", "job_peaks."),
    *("job_record.", "notify.", "preemption", "put_back.", "shared_memory.", "start_times.", "usage."),
)

#: Programs by the name of their file
Files = Mapping[str, str]
#: Namespace and name of a ConfigMap
Key = tuple[str, str]


def files(clusters: Iterable[MiniClusterModel]) -> dict[Key, Files]:
    """Return the files of each ConfigMap that several clusters share: those of the live one, else this version's."""
    by_key: dict[Key, Files] = {}
    for cluster in clusters:
        for one in filter(_is_shared, cluster.programs):
            key = (cluster.namespace, one.name)
            by_key[key] = one.files or by_key.get(key, of_brokers())
    return by_key


def _is_shared(one: Programs) -> bool:
    return bool(one.name)


def are_own(cluster: MiniClusterModel, files: Mapping[Key, Files]) -> bool:
    """Tell whether the programs are in the cluster's own ConfigMap, whose files pods prefer.

    So they are in a document that no chart wrote, for a live Job of an older version, and where a new Job would meet
    live programs that are not those of this version.
    """
    is_new = cluster.installed is None
    names = [one.name for one in cluster.programs]
    fresh = of_brokers()
    others = (files.get((cluster.namespace, name), fresh) for name in names)
    return not names or not all(names) or (is_new and any(each != fresh for each in others))


def documents(cluster: MiniClusterModel, left: dict[Key, Files]) -> Iterable[dict[str, Any]]:
    """Yield the ConfigMaps of a cluster's programs that no cluster before it had, and take them from ``left``."""
    for one in filter(_is_shared, cluster.programs):
        data = left.pop((cluster.namespace, one.name), None)
        if data is not None:
            for name, part in _parts(one.name, data):
                metadata = {
                    "name": name,
                    "namespace": cluster.namespace,
                    # it is of no single cluster
                    "labels": {key: text for key, text in cluster.labels.items() if key != INSTANCE},
                    "annotations": {**cluster.annotations, VERSION_ANNOTATION: one.version},
                }
                yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": part}


def _parts(name: str, data: Files) -> Iterable[tuple[str, dict[str, str]]]:
    """Yield the files of each ConfigMap by its name: `kubectl apply` could not copy all in one annotation."""
    if not any(file.startswith(SLURM_PREFIX) for file in data):
        yield name, dict(data)
        return
    second = {file: text for file, text in data.items() if file.startswith((SLURM_PREFIX, *BESIDE_SLURM))}
    yield name, {file: text for file, text in data.items() if file not in second}
    yield f"{name}-slurm", second


@cache
def of_brokers() -> Files:
    """Return the programs of the brokers' pods and services by file name."""
    return {name: text for name, text in pod.shipped().items() if name not in NOT_OF_BROKERS}


@cache
def of_others() -> Files:
    """Return the programs of other pods, which are new with each upgrade. Every cluster has its own."""
    return {name: text for name, text in pod.shipped().items() if name in NOT_OF_BROKERS}
